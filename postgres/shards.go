package postgres

import (
	"context"
	"encoding/binary"
	"math/bits"
	"net"
	"sort"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/furlhq/furl"
)

// Citus divides sessions into shards by the hash of their ids. furl computes the
// hash itself, so that finding a session's node while another is lost needs no
// query: with a query for each session, all sessions would wait for one another.

// shard is a range of hashes and the node that has its sessions.
type shard struct {
	from, to int32 // both included
	address  string
}

// homeOf returns the address of the node of a session, "" if it is unknown.
func homeOf(shards []shard, id furl.SessionID) string {
	hash := hashText(string(id))
	at := sort.Search(len(shards), func(i int) bool { return shards[i].to >= hash })
	if at == len(shards) || shards[at].from > hash {
		return ""
	}
	return shards[at].address
}

// surveyShards asks the server where shards are. It returns an empty list if
// the server computes hashes in another way, as one on a big-endian machine does.
func surveyShards(ctx context.Context, conn *pgx.Conn) ([]shard, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	const probe = "furl, a text of more than twelve bytes"
	rows, err := conn.Query(ctx, `
		select s.shardminvalue::integer, s.shardmaxvalue::integer, n.nodename, n.nodeport, worker_hash($1::text)
		from pg_dist_shard s join pg_dist_placement p using (shardid) join pg_dist_node n using (groupid)
		where s.logicalrelid = 'furl.sessions'::regclass and n.noderole = 'primary'
		order by s.shardminvalue::integer`, probe)
	if err != nil {
		return nil, err
	}
	found := []shard{}
	var next shard
	var host string
	var port int
	var hash int32
	_, err = pgx.ForEachRow(rows, []any{&next.from, &next.to, &host, &port, &hash}, func() error {
		if hash == hashText(probe) {
			next.address = net.JoinHostPort(host, strconv.Itoa(port))
			found = append(found, next)
		}
		return nil
	})
	return found, err
}

// hashText is PostgreSQL's hash of a text with a deterministic collation on
// little-endian machines: hash_bytes in src/common/hashfn.c, a variant of
// Bob Jenkins's lookup3.
func hashText(text string) int32 {
	k := []byte(text)
	a := 0x9e3779b9 + uint32(len(k)) + 3923095
	b, c := a, a
	for ; len(k) >= 12; k = k[12:] {
		a += binary.LittleEndian.Uint32(k)
		b += binary.LittleEndian.Uint32(k[4:])
		c += binary.LittleEndian.Uint32(k[8:])
		a = (a - c) ^ bits.RotateLeft32(c, 4)
		c += b
		b = (b - a) ^ bits.RotateLeft32(a, 6)
		a += c
		c = (c - b) ^ bits.RotateLeft32(b, 8)
		b += a
		a = (a - c) ^ bits.RotateLeft32(c, 16)
		c += b
		b = (b - a) ^ bits.RotateLeft32(a, 19)
		a += c
		c = (c - b) ^ bits.RotateLeft32(b, 4)
		b += a
	}
	var rest [12]byte
	copy(rest[:], k)
	a += binary.LittleEndian.Uint32(rest[:])
	b += binary.LittleEndian.Uint32(rest[4:])
	c += binary.LittleEndian.Uint32(rest[8:]) << 8 // the lowest byte is for the length
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	c = (c ^ b) - bits.RotateLeft32(b, 24)
	return int32(c)
}
