// Encodes and decodes HPACK with Go. For each input line, which contains a connection's header lists and field blocks,
// it writes a line with the encoded lists and the decoded blocks.
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"os"

	"golang.org/x/net/http2/hpack"
)

// The dynamic table's initial size (RFC 9113 §6.5.2).
const tableBytes = 4096

// Octets are base64 in JSON, because values may have any.
type field struct {
	Name, Value []byte
	// Must be a literal that is never indexed (RFC 7541 §6.2.3).
	Sensitive bool
}

type block struct {
	// The sizes that the table is set to before the block, in order.
	TableSizes []uint32
	Fields     []field
}

type connection struct {
	Lists  []block
	Blocks [][]byte
}

type reply struct {
	Blocks [][]byte
	Lists  [][]field
	// The error of the first invalid block, if any.
	Problem string
}

func main() {
	requests := json.NewDecoder(os.Stdin)
	replies := json.NewEncoder(os.Stdout)
	for requests.More() {
		var request connection
		if err := requests.Decode(&request); err != nil {
			log.Fatal(err)
		}
		result := reply{Blocks: encode(request.Lists)}
		var err error
		if result.Lists, err = decode(request.Blocks); err != nil {
			result.Problem = err.Error()
		}
		if err := replies.Encode(result); err != nil {
			log.Fatal(err)
		}
	}
}

func encode(lists []block) [][]byte {
	var buffer bytes.Buffer
	encoder := hpack.NewEncoder(&buffer)
	blocks := make([][]byte, 0, len(lists))
	for _, list := range lists {
		for _, size := range list.TableSizes {
			encoder.SetMaxDynamicTableSize(size)
		}
		for _, f := range list.Fields {
			header := hpack.HeaderField{Name: string(f.Name), Value: string(f.Value), Sensitive: f.Sensitive}
			if err := encoder.WriteField(header); err != nil {
				log.Fatal(err)
			}
		}
		blocks = append(blocks, bytes.Clone(buffer.Bytes()))
		buffer.Reset()
	}
	return blocks
}

func decode(blocks [][]byte) ([][]field, error) {
	decoder := hpack.NewDecoder(tableBytes, nil)
	lists := make([][]field, 0, len(blocks))
	for _, bytes := range blocks {
		headers, err := decoder.DecodeFull(bytes)
		if err != nil {
			return nil, err
		}
		list := make([]field, 0, len(headers))
		for _, f := range headers {
			list = append(list, field{Name: []byte(f.Name), Value: []byte(f.Value), Sensitive: f.Sensitive})
		}
		lists = append(lists, list)
	}
	return lists, nil
}
