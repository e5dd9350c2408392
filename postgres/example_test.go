package postgres_test

import (
	"context"
	"fmt"
	"log"

	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/storage"
)

// Several gateways share the store, with a standby for fail-over. The
// password comes from PGPASSWORD or .pgpass.
func ExampleOpen() {
	ctx := context.Background()
	store, err := postgres.Open(ctx, "postgres://furl@db1,db2/furl?target_session_attrs=read-write", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	for info, err := range store.Sessions(ctx, "", storage.SessionQuery{Limit: 10}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(info.Session, info.Title, info.Records)
	}
}
