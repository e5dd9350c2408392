package recall

import "strings"

// stopWords say little about what is searched for: the grammar of English, and
// the words with which people ask about a conversation. They have less weight, in
// queries only: without them a question would match other questions.
var stopWords = func() map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(`
		a about according after again all also an and another any are as at be because been before being both but by can
		could did do does doing done during each either else for from further get had has have having he her here hers him
		his how however i if in into is it its itself just me might more most much must my neither no nor not of off on once
		only or other our ours out over own please regarding same shall she should so some such than that the their theirs
		them then there these they this those through to too under until up upon us very was we were what whatever when
		where whether which while who whom whose why will with within without would you your yours

		describe discuss explain find know mention recall remember say said search show talk tell think thought thing`) {
		set[normalize(word)] = true
	}
	return set
}()
