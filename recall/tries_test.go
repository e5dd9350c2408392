package recall

import (
	"slices"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/chattest"
)

// try is a search by a person: the query, and the text that must be the first hit.
type try struct {
	query string
	want  string // key in tryTexts
	// missed, if set, is why the text is not the first hit.
	missed string
}

// tryTexts is one session: a text for each message, by a key.
var tryTexts = []struct{ key, role, text string }{
	{"hello", "user", "Hello, can you help me with the release?"},
	{"cafe", "user", norm.NFD.String("The café menu lists naïve dishes and crème brûlée.")},
	{"resume", "assistant", "Your résumé has a typo in the first paragraph."},
	{"angstrom", "user", "The sensor measures 5 \u212bngström of drift."},
	{"viet", "user", "Chúng tôi ở Việt Nam và thích phở."},
	{"greek", "user", "Η Αθήνα είναι όμορφη πόλη."},
	{"ancient", "user", "Ο λόγος του φίλου."},
	{"berlin", "user", "Die Männer gingen über die Straße nach Köln."},
	{"umlaut", "user", "Mueller und Jaeger wohnen in Duesseldorf, Schlossallee."},
	{"danish", "user", "Smørrebrød på Strøget, æbler fra Århus."},
	{"yo", "user", "Ещё один ёжик пьёт зелёный чай."},
	{"ye", "user", "Счет за елку оплачен, все готово."},
	{"short", "user", "Й и и разные буквы, мой край."},
	{"ligature", "assistant", "The ﬁnal ﬂow uses ｆｕｌｌｗｉｄｔｈ letters."},
	{"hindi", "user", "मुझे हिन्दी में दस्तावेज़ चाहिए।"},
	{"arabic", "user", "اكتب التقرير باللغة العربية من فضلك."},
	{"cat", "user", "黒い猫が好きです。"},
	{"tokyo", "user", "東京都に住んでいます。"},
	{"kana", "user", norm.NFD.String("ガラスのデータベースを直す。")},
	{"hangul", "user", "서버가 한강 근처에 있습니다."},
	{"hanguldec", "user", norm.NFD.String("데이터베이스를 복구했습니다.")},
	{"chinese", "assistant", "配置文件在水下目录里。"},
	{"thai", "user", "ฉันต้องการแก้ไขฐานข้อมูล"},
	{"party", "assistant", "All tests pass 🎉 and the branch is merged."},
	{"rocket", "assistant", "Deployed to staging 🚀🚀"},
	{"thumb", "user", "Looks good 👍🏽 thanks"},
	{"check", "assistant", "✓ build\n✗ lint"},
	{"warn", "assistant", "⚠️ disk almost full"},
	{"family", "user", "My 👩‍💻 friend wrote that."},
	{"cpp", "user", "Rewrite the tokenizer in C++ with templates."},
	{"cppc", "user", "The C library is linked statically, see the c flag and C headers."},
	{"csharp", "user", "Our game server is written in C#, it needs async."},
	{"gpp", "assistant", "Compile it with g++ -O2 main.cc"},
	{"fsharp", "user", "F# has pipelines."},
	{"golang", "user", "Golang has no generics there, it is Go."},
	{"render", "assistant", "I changed render.go and its test."},
	{"renderline", "result", "panic: nil map\n\tinternal/page/render.go:120 +0x1d"},
	{"parser", "result", "parser_test.go:44: unexpected token"},
	{"handler", "assistant", "The handler is in src/api/handler.ts, line 17."},
	{"config", "assistant", "parseConfig reads the file and loadDefaults fills it."},
	{"retry", "assistant", "MAX_RETRY_COUNT was raised to seven."},
	{"receive", "user", "We never receive the webhook from the bank."},
	{"friend", "user", "A colleague maintains the scheduler."},
	{"kubernetes", "assistant", "The kubernetes cluster has three nodes."},
	{"license", "user", "Which license does the vendor module have?"},
	{"licenseanswer", "assistant", "Apache, since the spring."},
	{"where", "user", "Where did the outage of the payment gateway start? I'm curious."},
	{"whereanswer", "assistant", "In Frankfurt, a switch failed."},
	{"birthday", "user", "What did Melanie get for her birthday?"},
	{"birthdayanswer", "user", "A telescope from her brothers."},
	{"callq", "user", "How many rows does the customers table have?"},
	{"callresult", "result", "4711"},
}

var tries = []try{
	// Composed and decomposed text, accents.
	{"café", "cafe", ""}, {"cafe menu", "cafe", ""}, {norm.NFD.String("naïve"), "cafe", ""}, {"naive dishes", "cafe", ""}, {"creme brulee", "cafe", ""},
	{"crème brûlée", "cafe", ""}, {norm.NFD.String("résumé"), "resume", ""}, {"resume typo", "resume", ""}, {"Ångström", "angstrom", ""}, {"angstrom drift", "angstrom", ""},
	{"Việt Nam", "viet", ""}, {"viet nam", "viet", ""}, {"pho", "viet", ""}, {"Αθηνα", "greek", ""}, {"όμορφη", "greek", ""}, {"λογοσ", "ancient", ""},
	// Letters that are written in two ways.
	{"Maenner", "berlin", ""}, {"manner", "berlin", ""}, {"MÄNNER", "berlin", ""}, {"Strasse", "berlin", ""}, {"STRASSE", "berlin", ""}, {"Straße", "berlin", ""}, {"Koeln", "berlin", ""},
	{"koln", "berlin", ""}, {"Müller", "umlaut", ""}, {"Jäger", "umlaut", ""}, {"Düsseldorf", "umlaut", ""}, {"Schloßallee", "umlaut", ""}, {"Smoerrebroed", "danish", ""}, {"smorrebrod", "danish", ""},
	{"aebler", "danish", ""}, {"Aarhus", "danish", ""}, {"еще", "yo", ""}, {"ежик", "yo", ""}, {"зеленый чай", "yo", ""}, {"счёт", "ye", ""}, {"ёлку", "ye", ""}, {norm.NFD.String("край"), "short", ""},
	{"final flow", "ligature", ""}, {"fullwidth", "ligature", ""}, {"हिन्दी", "hindi", ""}, {norm.NFD.String("दस्तावेज़"), "hindi", ""}, {"العربية", "arabic", ""},
	// Single characters and emoji.
	{"猫", "cat", ""}, {"京", "tokyo", ""}, {"東京", "tokyo", ""}, {"ガラス", "kana", ""}, {"データベース", "kana", ""}, {"강", "hangul", ""}, {"서버", "hangul", ""}, {"데이터베이스", "hanguldec", ""}, {"水", "chinese", ""},
	{"配置", "chinese", ""}, {"ฐานข้อมูล", "thai", ""}, {"🎉", "party", ""}, {"🚀", "rocket", ""}, {"👍", "thumb", ""}, {"👍🏿", "thumb", ""}, {"✓", "check", ""}, {"⚠", "warn", ""}, {"👩‍💻", "family", ""}, {"merged 🎉", "party", ""},
	// Languages.
	{"C++", "cpp", ""}, {"c++", "cpp", ""}, {"C++ tokenizer", "cpp", ""}, {"C#", "csharp", ""}, {"c# async", "csharp", ""}, {"g++", "gpp", ""}, {"F#", "fsharp", ""}, {"C", "cppc", ""},
	// Names with lines.
	{"render.go:99", "render", ""}, {"render.go:120", "renderline", ""}, {"parser_test.go:44:3", "parser", ""}, {"src/api/handler.ts:17", "handler", ""}, {"handler.ts#L17", "handler", ""},
	// Letters swapped.
	{"recieve", "receive", ""}, {"kuberentes", "kubernetes", ""}, {"shceduler", "friend", ""}, {"MAX_RETYR_COUNT", "retry", ""},
	// Answers.
	{"license of the vendor module", "license", ""}, {"what did Melanie get for her birthday", "birthday", ""},
}

// Searches of the kinds that once found nothing or something else. At most three may
// miss, each with its reason.
func TestTries(t *testing.T) {
	store := inmem.New()
	key := furl.SessionKey{Session: "s"}
	keys := []string{""}
	log := furl.NewLog()
	for _, x := range tryTexts {
		m := furl.TextMessage(furl.Role(x.role), x.text)
		if x.role == "result" {
			m = &furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{{Kind: furl.KindResult, ID: "c", Text: x.text}}}
		}
		m.Seal()
		if _, err := log.Append(log.Head(), begun, furl.Client, m); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, x.key)
	}
	put(t, store, key, log.Records(0))
	missed := 0
	for _, indexed := range []bool{false, true} {
		if indexed {
			if err := NewIndexer(store, nil).Catchup(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		s := NewSearcher(store, nil)
		for _, session := range []furl.SessionID{"s", ""} {
			for _, x := range tries {
				hits := search(t, s, Request{Session: session, Text: x.query, Limit: 5})
				var got []string
				for _, h := range hits {
					got = append(got, keys[h.Pos.Msg])
				}
				if len(got) > 0 && got[0] == x.want {
					continue
				}
				if x.missed != "" {
					missed++
					continue
				}
				t.Errorf("indexed %v, session %q: %q finds %q, want %s", indexed, session, x.query, got, x.want)
			}
		}
	}
	if len(tries) < 75 || missed > 4*3 {
		t.Errorf("%d tries, %d missed", len(tries), missed)
	}
}

// A text that answers a question is found by the question; a result is not.
func TestAnswers(t *testing.T) {
	store := inmem.New()
	key := furl.SessionKey{Session: "s"}
	log := furl.NewLog()
	number := make(map[string]furl.Seq)
	for _, x := range tryTexts {
		m := furl.TextMessage(furl.Role(x.role), x.text)
		if x.role == "result" {
			m = &furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{{Kind: furl.KindResult, ID: "c", Text: x.text}}}
		}
		m.Seal()
		r, err := log.Append(log.Head(), begun, furl.Client, m)
		if err != nil {
			t.Fatal(err)
		}
		number[x.key] = r.Seq
	}
	put(t, store, key, log.Records(0))
	for _, tt := range []struct {
		query, question, answer string
		want                    bool
	}{
		{"license of the vendor module", "license", "licenseanswer", true},
		{"where did the outage of the payment gateway start", "where", "whereanswer", true},
		{"what did Melanie get for her birthday", "birthday", "birthdayanswer", true},
		{"how many rows in the customers table", "callq", "callresult", false},
		{"parseConfig", "config", "retry", false},
	} {
		hits := search(t, NewSearcher(store, nil), Request{Session: "s", Text: tt.query, Limit: 5})
		at := func(key string) int {
			return slices.IndexFunc(hits, func(h Hit) bool { return h.Pos.Msg == number[key] })
		}
		if q, a := at(tt.question), at(tt.answer); q != 0 || (a > q) != tt.want {
			t.Errorf("%q: the question is hit %d and the answer %d, want found %v", tt.query, q, a, tt.want)
		}
	}
}

// If nothing matches, a word with two letters swapped is searched for, and the result
// says so.
func TestSwapped(t *testing.T) {
	store := inmem.New()
	key := furl.SessionKey{Session: "s"}
	v := []string{"We never receive the webhook.", "Which database?", "parse it"}
	log := furl.NewLog()
	for _, text := range v {
		m := furl.TextMessage(furl.RoleUser, text)
		m.Seal()
		if _, err := log.Append(log.Head(), begun, furl.Client, m); err != nil {
			t.Fatal(err)
		}
	}
	put(t, store, key, log.Records(0))
	s := NewSearcher(store, nil)
	for _, tt := range []struct {
		req   Request
		query string
		hits  int
	}{
		{Request{Text: "recieve"}, "receive", 1},
		{Request{Text: "recieve wehbook!"}, "receive webhook!", 1},
		{Request{Text: "recieve databsae"}, "receive database", 3},
		{Request{Text: "recieve", Offset: 1}, "receive", 0},
		{Request{Text: "receive"}, "", 1},
		{Request{Text: "receive", Offset: 1}, "", 0},
		{Request{Text: "recieve", Roles: []furl.Role{furl.RoleAssistant}}, "", 0},
		{Request{Text: "qqqq zzzz"}, "", 0},
		{Request{Text: "apesr"}, "", 0}, // more than two letters
	} {
		for _, session := range []furl.SessionID{"s", ""} {
			tt.req.Session = session
			got, err := s.Search(t.Context(), tt.req)
			if err != nil {
				t.Fatal(err)
			}
			if got.Query != tt.query || len(got.Hits) != tt.hits {
				t.Errorf("session %q: %+v: searched for %q, %d hits; want %q, %d", session, tt.req, got.Query, len(got.Hits), tt.query, tt.hits)
			}
		}
	}
}

// Chats, where most answers have none of the words of the question.
func TestChats(t *testing.T) {
	var answers tally
	for _, c := range chattest.Chats(1, 10) {
		store := inmem.New()
		key := furl.SessionKey{Session: "s"}
		log := furl.NewLog()
		for _, turn := range c.Turns {
			m := furl.TextMessage(furl.RoleUser, turn)
			m.Seal()
			if _, err := log.Append(log.Head(), begun, furl.Client, m); err != nil {
				t.Fatal(err)
			}
		}
		put(t, store, key, log.Records(0))
		s := NewSearcher(store, nil)
		for _, q := range c.Questions {
			hits := search(t, s, Request{Session: "s", Text: q.Text, Limit: 20, Excerpt: -1})
			answers.add(hits, func(h Hit) bool { return slices.Contains(q.Evidence, int(h.Pos.Msg)-1) })
		}
	}
	answers.check(t, "chats", 0.80, 0.90, 0.40)
}
