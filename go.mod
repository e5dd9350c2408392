module github.com/furlhq/furl

go 1.26
