// Reads a stream of answers line by line, or sends its input as the body of a request, with net/http alone.
package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
)

func main() {
	response, err := ask(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer response.Body.Close()
	// net/http asks for gzip by itself, and undoes it.
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		fmt.Println(lines.Text())
	}
}

func ask(what, url string) (*http.Response, error) {
	if what == "watch" {
		return http.Get(url)
	}
	return http.Post(url, "application/x-ndjson", os.Stdin)
}
