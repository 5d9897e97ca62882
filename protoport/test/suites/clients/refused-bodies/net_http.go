// Sends a body with net/http for each line "method url content-type bytes", and prints the status.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

func main() {
	var method, url, contentType string
	var size int
	for {
		if _, err := fmt.Scan(&method, &url, &contentType, &size); err != nil {
			return
		}
		request, err := http.NewRequest(method, url, bytes.NewReader(make([]byte, size)))
		if err != nil {
			panic(err)
		}
		request.Header.Set("Content-Type", contentType)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			fmt.Println(err)
			continue
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		fmt.Println(response.StatusCode)
	}
}
