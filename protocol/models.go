package protocol

// ModelQuery is a request to a provider for the sizes of a model.
type ModelQuery struct {
	// Path is the path of the URL. If Name is not empty, it is the last segment of the path,
	// and may have any characters. Query are the parameters.
	Path, Name string
	Query      map[string]string
	// Root reports that the path is outside the API: the API version of a base URL does
	// not precede it.
	Root bool
	// Body is the body of a POST; nil: it is a GET.
	Body []byte
	// Read reads the body of a response with status 200.
	Read func(body []byte) ModelAnswer
}

// ModelAnswer is what a provider reports of a model.
type ModelAnswer struct {
	// Window is the context window, and MaxOutput the largest reply, in tokens, 0 if the
	// provider does not report them.
	Window, MaxOutput int
	// Next are the queries to send if this one did not report the window, in order.
	Next []ModelQuery
}
