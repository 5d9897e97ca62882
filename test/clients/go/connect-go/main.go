// Deletes plants with the client of protoc-gen-connect-go, over Connect.
package main

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	plantstorev1 "plantstore/gen/plantstore/v1"
	"plantstore/gen/plantstore/v1/plantstorev1connect"
	"plantstore/script"
)

func main() {
	server := script.FromArguments()
	transport := &http.Transport{TLSClientConfig: server.TLS, ForceAttemptHTTP2: true}
	client := plantstorev1connect.NewPlantServiceClient(&http.Client{Transport: transport}, server.URL())

	script.Run(func(ctx context.Context, id int64, token string) (int, string) {
		request := connect.NewRequest(&plantstorev1.DeletePlantRequest{Id: &id})
		if token != "" {
			request.Header().Set("Authorization", "Bearer "+token)
		}
		_, err := client.DeletePlant(ctx, request)
		var problem *connect.Error
		if errors.As(err, &problem) {
			return int(problem.Code()), problem.Message()
		}
		return 0, ""
	})
}
