package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	streamsv1 "plantstore/gen/streams/v1"
)

// callers is how many calls are concurrent.
const callers = 64

// contentBytes is how many bytes each sent piece has.
const contentBytes = 64 * 1024

// Streams are the stream service's RPCs in a client.
type Streams struct {
	Echo  func(ctx context.Context) (EchoStream, error)
	Count func(ctx context.Context, request *streamsv1.CountRequest) (Receiver, error)
	// Explain returns the gRPC code and the message for an error, or nil.
	Explain func(err error) (code int, message string)
}

// EchoStream sends and receives pieces.
type EchoStream interface {
	Send(piece *streamsv1.Piece) error
	CloseSend() error
	Receiver
}

// Receiver returns each piece, and io.EOF after the last.
type Receiver interface {
	Recv() (*streamsv1.Piece, error)
}

// load deletes plants 1, 2, 3 … for some seconds, and prints how often each outcome occurred, in which "#" stands for
// the plant.
func load(delete Delete, token string, seconds int) {
	var counts counts
	var ids atomic.Int64
	call := func() {
		id := ids.Add(1)
		code, message := delete(context.Background(), id, token)
		counts.add(fmt.Sprint(code, " ", strings.Replace(message, fmt.Sprint(id), "#", 1)))
	}
	// Without an open connection, some clients would open one for each call.
	call()
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for time.Now().Before(until) {
				call()
			}
		})
	}
	running.Wait()
	counts.print()
}

// echo sends pieces, reads the echoes meanwhile, and prints how many pieces of each size arrived, and the outcome.
func (s *Streams) echo(pieces int) {
	stream, err := s.Echo(context.Background())
	if err == nil {
		go send(stream, pieces)
	}
	s.read(stream, err)
}

func send(stream EchoStream, pieces int) {
	content := make([]byte, contentBytes)
	for number := range pieces {
		// The receiver reports the error that ends the stream.
		if stream.Send(&streamsv1.Piece{Number: int32(number), Content: content}) != nil {
			return
		}
	}
	stream.CloseSend()
}

// count requests pieces, and prints how many pieces of each size arrived, and the outcome.
func (s *Streams) count(pieces int) {
	s.read(s.Count(context.Background(), &streamsv1.CountRequest{Pieces: int32(pieces)}))
}

func (s *Streams) read(receiver Receiver, err error) {
	var counts counts
	for wanted := int32(0); err == nil; wanted++ {
		var piece *streamsv1.Piece
		piece, err = receiver.Recv()
		switch {
		case err != nil:
		case piece.Number != wanted:
			counts.add(fmt.Sprint("number ", piece.Number, " for ", wanted))
		default:
			counts.add(fmt.Sprint(len(piece.Content), " bytes"))
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	code, message := s.Explain(err)
	counts.add(fmt.Sprint(code, " ", message))
	counts.print()
}

// counts is how often each text occurred.
type counts struct {
	mutex sync.Mutex
	times map[string]int
}

func (c *counts) add(seen string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.times == nil {
		c.times = map[string]int{}
	}
	c.times[strings.TrimSpace(seen)]++
}

// print prints a line for each text, and then an empty line.
func (c *counts) print() {
	for seen, times := range c.times {
		fmt.Println(times, seen)
	}
	fmt.Println()
}
