// Deletes plants with protoc-gen-connect-go's client over Connect. Uses HTTP/2 if the variable HTTP2 is set.
package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"

	"connectrpc.com/connect"

	plantstorev1 "plantstore/gen/plantstore/v1"
	"plantstore/gen/plantstore/v1/plantstorev1connect"
	streamsv1 "plantstore/gen/streams/v1"
	"plantstore/gen/streams/v1/streamsv1connect"
	"plantstore/script"
)

func main() {
	server := script.FromArguments()
	transport := &http.Transport{TLSClientConfig: server.TLS, ForceAttemptHTTP2: true}
	if os.Getenv("HTTP2") != "" {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetHTTP2(true)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	httpClient := &http.Client{Transport: transport}
	client := plantstorev1connect.NewPlantServiceClient(httpClient, server.URL())

	script.Run(func(ctx context.Context, id int64, token string) (int, string) {
		request := connect.NewRequest(&plantstorev1.DeletePlantRequest{Id: &id})
		if token != "" {
			request.Header().Set("Authorization", "Bearer "+token)
		}
		_, err := client.DeletePlant(ctx, request)
		return explain(err)
	}, streamsOf(streamsv1connect.NewStreamServiceClient(httpClient, server.URL())))
}

func explain(err error) (int, string) {
	if err == nil {
		return 0, ""
	}
	var problem *connect.Error
	if errors.As(err, &problem) {
		return int(problem.Code()), problem.Message()
	}
	return int(connect.CodeUnknown), err.Error()
}

func streamsOf(client streamsv1connect.StreamServiceClient) *script.Streams {
	return &script.Streams{
		Echo: func(ctx context.Context) (script.EchoStream, error) { return echoStream{client.Echo(ctx)}, nil },
		Count: func(ctx context.Context, request *streamsv1.CountRequest) (script.Receiver, error) {
			stream, err := client.Count(ctx, connect.NewRequest(request))
			return countStream{stream}, err
		},
		Explain: explain,
	}
}

type echoStream struct {
	*connect.BidiStreamForClient[streamsv1.Piece, streamsv1.Piece]
}

func (s echoStream) CloseSend() error                { return s.CloseRequest() }
func (s echoStream) Recv() (*streamsv1.Piece, error) { return s.Receive() }

type countStream struct {
	*connect.ServerStreamForClient[streamsv1.Piece]
}

func (s countStream) Recv() (*streamsv1.Piece, error) {
	if s.Receive() {
		return s.Msg(), nil
	}
	if s.Err() != nil {
		return nil, s.Err()
	}
	return nil, io.EOF
}
