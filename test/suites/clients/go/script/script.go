// Package script makes the calls that standard input lists, and prints their outcomes.
package script

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"
)

// Server is the server's address.
type Server struct {
	Authority string
	// TLS is nil for cleartext.
	TLS *tls.Config
}

// URL returns the server's base URL.
func (s Server) URL() string {
	if s.TLS == nil {
		return "http://" + s.Authority
	}
	return "https://" + s.Authority
}

// FromArguments reads the server's address and the authority to trust.
func FromArguments() Server {
	server := Server{Authority: os.Args[1]}
	if len(os.Args) > 2 {
		pem, err := os.ReadFile(os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		server.TLS = &tls.Config{RootCAs: roots}
	}
	return server
}

// Delete deletes one plant, and returns the gRPC code and a message.
type Delete func(ctx context.Context, id int64, token string) (code int, message string)

// Run executes the lines on standard input. A line has an id or a kind of load, a token, and a deadline in milliseconds
// or the amount of load, with "-" for none. A client without streams passes nil.
func Run(delete Delete, streams *Streams) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		token := strings.TrimPrefix(words[1], "-")
		switch words[0] {
		case "load":
			load(delete, token, number(words[2]))
		case "echo":
			streams.echo(number(words[2]))
		case "count":
			streams.count(number(words[2]))
		default:
			ctx, cancel := deadline(words[2])
			code, message := delete(ctx, int64(number(words[0])), token)
			cancel()
			fmt.Println(strings.TrimSpace(fmt.Sprint(code, " ", message)))
		}
	}
}

func deadline(word string) (context.Context, context.CancelFunc) {
	if word == "-" {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), time.Duration(number(word))*time.Millisecond)
}

func number(word string) int {
	value, err := strconv.Atoi(word)
	if err != nil {
		log.Fatal(err)
	}
	return value
}
