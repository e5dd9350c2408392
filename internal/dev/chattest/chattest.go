// Package chattest makes long chats between two people, with questions about them and
// the turns that answer these, to measure search. The chats are like those of LoCoMo:
// friends talk about their lives over months, one asks and the other answers, often
// without repeating the words of the question. A seed always gives the same chats.
package chattest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Chat is a chat with questions about it.
type Chat struct {
	Turns     []string // "Speaker: text", the oldest first
	Questions []Question
}

// Question is a question about a chat.
type Question struct {
	Text     string
	Evidence []int // the turns that answer it
}

// fact is something that a speaker tells: asked for by the other, or not.
type fact struct {
	topic   string   // its words
	asked   []string // how the other one asks
	answers []string // answers, most without words of the topic
	told    []string // how it is told without a question
	later   []string // how it is searched for; %s is the speaker
}

var facts = []fact{
	{"pottery", []string{"What did you make in pottery class?", "How is the pottery class going?"}, []string{"A black bowl with a white rim, it turned out great!", "Really well, I finished a set of mugs for my sister."}, []string{"In my pottery class I made a vase for the hallway."}, []string{"What did %s make in the pottery class?", "Which things has %s made in pottery?"}},
	{"marathon", []string{"Which city did you pick for the marathon?", "Have you signed up for the marathon yet?"}, []string{"Rotterdam, because it is flat and my cousin lives there.", "Yes, Valencia in December. I'm a bit nervous!"}, []string{"I decided to run the Lisbon marathon next autumn."}, []string{"Where does %s want to run a marathon?", "Which marathon did %s choose?"}},
	{"dog", []string{"What are you going to name the puppy?", "How is your dog doing after the operation?"}, []string{"We settled on Biscuit, the kids voted.", "He's limping a little, but the vet is happy."}, []string{"Our dog Max ran away, but a neighbour brought him back."}, []string{"What is the name of %s's puppy?", "How is %s's dog after the operation?"}},
	{"job interview", []string{"How did the interview at the museum go?", "Did you hear back from the museum about the interview?"}, []string{"They offered me the position on the spot, I start in May.", "Not yet, they promised to call on Friday."}, []string{"My interview at the museum was moved to Thursday."}, []string{"How did %s's interview at the museum go?", "What came of the museum interview of %s?"}},
	{"grandmother", []string{"What was your grandmother's recipe for the soup?", "Where did your grandmother grow up?"}, []string{"Beetroot, dill, and a spoon of horseradish at the end.", "In a fishing village near Bergen, with six brothers."}, []string{"My grandmother taught me to bake rye bread."}, []string{"What belongs in the soup of %s's grandmother?", "Where did the grandmother of %s grow up?"}},
	{"camping trip", []string{"Where did you go camping with the kids?", "What was the best part of the camping trip?"}, []string{"By the lake below the glacier, three nights.", "Definitely the meteor shower, we all lay on one blanket."}, []string{"We went camping in the Black Forest and it rained for two days."}, []string{"Where did %s go camping with the kids?", "What did %s like best about the camping trip?"}},
	{"guitar", []string{"Which song are you learning on the guitar?", "How long have you been playing guitar?"}, []string{"Blackbird, my fingers hurt already.", "Since I was twelve, with a break for college."}, []string{"I bought a used guitar from a friend at work."}, []string{"Which song does %s learn on the guitar?", "Since when does %s play the guitar?"}},
	{"adoption", []string{"What made you choose that adoption agency?", "Have you told your parents about the adoption?"}, []string{"They support families like ours, that meant a lot to me.", "Mom cried, and she has started knitting."}, []string{"I researched adoption agencies all weekend."}, []string{"Why did %s choose the adoption agency?", "How did the parents of %s react to the adoption?"}},
	{"garden", []string{"What did you plant in the garden this year?", "Did anything survive the frost in your garden?"}, []string{"Mostly beans, and a row of sunflowers for the bees.", "Only the kale, everything else is gone."}, []string{"The tomatoes in my garden are finally ripe."}, []string{"What did %s plant in the garden?", "What survived the frost in %s's garden?"}},
	{"allergy", []string{"What did the doctor say about your allergy?", "Are you still allergic to cats?"}, []string{"It's the walnuts, so no more of your cake for me.", "Less than before, the tablets help a lot."}, []string{"My allergy got so bad that I could not sleep."}, []string{"What did the doctor say about %s's allergy?", "Is %s still allergic to cats?"}},
	{"novel", []string{"How far are you with your novel?", "What is your novel about?"}, []string{"Chapter nine, and my editor likes it so far.", "Two sisters who inherit a ferry."}, []string{"I rewrote the beginning of my novel again."}, []string{"How far is %s with the novel?", "What is the novel of %s about?"}},
	{"apartment", []string{"When do you move into the new apartment?", "What is the view from your apartment like?"}, []string{"On the first of March, if the painter is done.", "Just rooftops, and one very loud crow."}, []string{"The rent of my apartment goes up again."}, []string{"When does %s move into the new apartment?", "What does %s see from the apartment?"}},
	{"violin concert", []string{"Who did you see at the concert?", "How was your daughter's violin concert?"}, []string{"Hilary Hahn, from the third row!", "She forgot a bar and smiled it away, we were so proud."}, []string{"We have tickets for the concert in the old theatre."}, []string{"Who did %s see at the concert?", "How was the violin concert of %s's daughter?"}},
	{"charity", []string{"How much did you raise at the charity run?", "Who organizes the charity dinner?"}, []string{"Almost four thousand, twice as much as last time.", "Nina from the library, as always."}, []string{"I volunteered at the charity shop on Saturday."}, []string{"How much did %s raise at the charity run?", "Who organizes the charity dinner that %s mentioned?"}},
	{"painting", []string{"What inspired your last painting?", "Did you sell the painting of the harbour?"}, []string{"A sunset after the storm, I could not stop looking.", "To a dentist, for his waiting room."}, []string{"I finished a painting of a horse for my niece."}, []string{"What inspired %s's last painting?", "To whom did %s sell the painting of the harbour?"}},
	{"therapy", []string{"Has the therapy group helped you?", "What do you talk about in the support group?"}, []string{"More than I expected, I feel less alone.", "Mostly about courage, and how to tell people."}, []string{"I went to a support group yesterday and it was powerful."}, []string{"Has the therapy group helped %s?", "What is talked about in %s's support group?"}},
}

var smallTalk = []string{
	"Wow, that's amazing!", "Haha, I can imagine.", "Thanks, that means a lot to me.", "Sounds like a plan.", "I'm so happy for you!",
	"Take care of yourself.", "Same here, it was a long week.", "Let's catch up again soon.", "Oh no, I'm sorry to hear that.",
	"That reminds me of our time at school.", "You always know what to say.", "The weather was awful, we stayed at home.",
	"Work keeps me busy, but I can't complain.", "I was thinking of you the other day.", "Keep me posted!",
	"Hey, how have you been?", "What's new with you?", "How was your weekend?", "Can you believe it's almost summer?",
	"Nothing special, just cooking and reading.", "Pretty good, a bit tired.", "We should do something with the kids next month.",
	"I talked to my sister about the garden party and the new job.", "Someone at work brought a dog, everybody went crazy.",
	"They played the guitar in the subway, it made my day.", "I read about a marathon in the paper.", "My cousin wants to go camping with us.",
}

var names = []string{"Anna", "Jonas", "Melanie", "Tariq", "Caroline", "Wei", "Priya", "Marcus", "Elif", "Diego"}

// Chats returns n chats for a seed.
func Chats(seed uint64, n int) []Chat {
	r := rand.New(rand.NewPCG(seed, 18))
	chats := make([]Chat, n)
	for i := range chats {
		chats[i] = chat(r)
	}
	return chats
}

// chat makes a chat of about 25 meetings.
func chat(r *rand.Rand) (c Chat) {
	at := r.IntN(len(names))
	people := [2]string{names[at], names[(at+1+r.IntN(len(names)-1))%len(names)]}
	say := func(who int, text string) int {
		c.Turns = append(c.Turns, people[who]+": "+text)
		return len(c.Turns) - 1
	}
	talk := func() {
		for range 1 + r.IntN(5) {
			say(len(c.Turns)%2, smallTalk[r.IntN(len(smallTalk))])
		}
	}
	for _, i := range r.Perm(len(facts)) {
		f := facts[i]
		for _, n := range r.Perm(2) { // each topic comes up with both questions, or is told
			talk()
			who := r.IntN(2)
			if r.IntN(5) < 2 { // told without a question
				told := f.told[0]
				turn := say(who, smallTalk[r.IntN(len(smallTalk))]+" "+told)
				if n == 0 {
					c.Questions = append(c.Questions, Question{fmt.Sprintf("What did %s say about %s?", people[who], f.topic), []int{turn}})
				}
				continue
			}
			asked := f.asked[n]
			if r.IntN(2) == 0 {
				asked += " " + []string{"I'm curious!", "Tell me everything.", people[who] + ", I have to know."}[r.IntN(3)]
			}
			say(1-who, asked)
			turn := say(who, f.answers[n]+strings.Repeat(" "+smallTalk[r.IntN(len(smallTalk))], r.IntN(2)))
			say(1-who, smallTalk[r.IntN(len(smallTalk))])
			c.Questions = append(c.Questions, Question{fmt.Sprintf(f.later[n], people[who]), []int{turn}})
		}
	}
	return c
}
