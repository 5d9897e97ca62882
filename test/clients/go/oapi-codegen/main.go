// Deletes plants over REST with the client that oapi-codegen makes of openapi.json.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"

	"plantstore/openapi"
	"plantstore/script"
)

// The number of DEADLINE_EXCEEDED. Here it is the client that gives up.
const deadlineExceeded = 4

func main() {
	server := script.FromArguments()
	transport := &http.Transport{TLSClientConfig: server.TLS}
	client, err := openapi.NewClientWithResponses(server.URL(), openapi.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		log.Fatal(err)
	}

	script.Run(func(ctx context.Context, id int64, token string) (int, string) {
		authorize := func(_ context.Context, request *http.Request) error {
			if token != "" {
				request.Header.Set("Authorization", "Bearer "+token)
			}
			return nil
		}
		answer, err := client.DeletePlantWithResponse(ctx, id, &openapi.DeletePlantParams{}, authorize)
		if errors.Is(err, context.DeadlineExceeded) {
			return deadlineExceeded, err.Error()
		}
		if err != nil {
			log.Fatal(err)
		}
		if answer.StatusCode() == http.StatusNoContent {
			return 0, ""
		}
		return int(answer.JSON400.Error), answer.JSON400.Message
	}, nil)
}
