// Package mcptool offers the tools of MCP servers as values of package tool.
//
//	c, err := mcptool.Connect(ctx, mcptool.Server{Name: "files", Command: "mcp-files", Args: []string{"/srv"}})
//	defer c.Close()
//	tools, err := c.Tools(ctx)
//
// A server is a command that speaks the protocol on its standard streams, or an
// address with the streamable HTTP transport. What it sends is limited in size: the
// number of tools, their descriptions and schemas, and results. If it ends, the call
// in progress fails with the last lines of its standard error, and the next call
// starts it again.
//
// A server is not trusted with the environment of the program: a command gets the
// variables that a login has, such as HOME and PATH, and those in Server.Env.
package mcptool
