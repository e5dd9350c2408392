package cli

import "net"

// reachedAt is the URL under which programs on this machine reach who listens on
// an address. All addresses of the machine, such as 0.0.0.0, are none that a
// client can be given; others put the machine's name in.
func reachedAt(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	switch ip := net.ParseIP(host); {
	case host == "", ip != nil && ip.IsUnspecified():
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
