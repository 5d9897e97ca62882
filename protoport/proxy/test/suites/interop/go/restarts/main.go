// `restarts PORT [retry]` calls with grpc-go until standard input ends. It prints the number of calls, and a line for
// each error.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

const callers = 8

func main() {
	connection, err := grpc.NewClient("127.0.0.1:"+os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	waits := grpc.WaitForReady(len(os.Args) > 2)
	ended := make(chan struct{})
	var mutex sync.Mutex
	calls, errors := 0, map[string]int{}
	call := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		// Fields of the response are unknown to Empty.
		err := connection.Invoke(ctx, "/greenhouse.v1.GreenhouseService/GetReading", &emptypb.Empty{}, &emptypb.Empty{}, waits)
		mutex.Lock()
		defer mutex.Unlock()
		calls++
		if err != nil {
			errors[err.Error()]++
		}
	}
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					call()
					time.Sleep(rand.N(10 * time.Millisecond))
				}
			}
		})
	}
	io.Copy(io.Discard, os.Stdin)
	close(ended)
	running.Wait()
	fmt.Println(calls)
	for text, times := range errors {
		fmt.Println(times, text)
	}
}
