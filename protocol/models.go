package protocol

// ModelQuery is a request by which a provider says what it knows about a model.
type ModelQuery struct {
	// Path is the path of the URL. If Name is not empty, it follows as one segment, which
	// may have any characters. Query are the parameters.
	Path, Name string
	Query      map[string]string
	// Root reports that the path is outside the API: a base URL's API version is not
	// before it.
	Root bool
	// Body is the body of a POST; nil: it is a GET.
	Body []byte
	// Read reads the body of a response with status 200.
	Read func(body []byte) ModelAnswer
}

// ModelAnswer is what a provider says about a model.
type ModelAnswer struct {
	// Window is the context window, and MaxOutput the largest reply, in tokens; 0: it
	// does not say.
	Window, MaxOutput int
	// Next are the queries that may tell the window if this one does not, in the order
	// in which they are tried.
	Next []ModelQuery
}
