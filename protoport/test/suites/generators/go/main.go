package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	catalog "generated/go/client"
)

func main() {
	ctx := context.Background()
	configuration := catalog.NewConfiguration()
	configuration.Servers = catalog.ServerConfigurations{{URL: os.Args[1]}}
	api := catalog.NewAPIClient(configuration).CatalogAPI

	moss := catalog.NewBook()
	moss.SetTitle("Moss")
	moss.SetSerial("9007199254740993")
	moss.SetCover("AAH+")
	moss.SetLabels(map[string]string{"soil": "damp"})
	moss.SetAuthor("Flora")
	created := one(api.V1CatalogCreateBook(ctx, "green").BookId("moss").Book(*moss).Execute())
	fmt.Println("created", created.GetState(), created.GetSerial(), created.GetCover(), created.GetLabels()["soil"])
	fern := catalog.NewBook()
	fern.SetTitle("Fern")
	one(api.V1CatalogCreateBook(ctx, "green").BookId("fern").Book(*fern).Execute())

	first := one(api.V1CatalogListBooks(ctx, "green").PageSize(1).Execute())
	second := one(api.V1CatalogListBooks(ctx, "green").PageSize(1).PageToken(first.GetNextPageToken()).Execute())
	end := "end"
	if second.HasNextPageToken() {
		end = second.GetNextPageToken()
	}
	fmt.Printf("pages: %s, %s, %s\n", titles(first.Books), titles(second.Books), end)

	update := catalog.NewV1CatalogUpdateBookRequest()
	update.SetTitle("Mosses")
	updated := one(api.V1CatalogUpdateBook(ctx, "green", "moss").UpdateMask("title").V1CatalogUpdateBookRequest(*update).Execute())
	fmt.Println("updated", updated.GetTitle(), updated.GetAuthor())
	lend := catalog.NewV1CatalogLendBookRequest()
	lend.SetReader("Ann")
	lend.SetDueTime(time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC))
	loan := one(api.V1CatalogLendBook(ctx, "green", "moss").V1CatalogLendBookRequest(*lend).Execute())
	fmt.Println("lent", loan.GetReader(), loan.GetState(), loan.GetDueTime().Unix())
	out := one(api.V1CatalogListBooks(ctx, "green").State(catalog.BOOKSTATE_STATE_LENT).Execute())
	fmt.Println("out:", titles(out.Books))
	fmt.Println("watched:", titles(one(api.V1CatalogWatchBooks(ctx, "green").Execute())))

	scan := one2(os.CreateTemp("", "scan"))
	defer os.Remove(scan.Name())
	one2(scan.Write([]byte{0, 1, 254, 13, 10, 255}))
	one2(scan.Seek(0, io.SeekStart))
	one(api.V1CatalogPutScan(ctx, "green", "moss").Body(scan).Execute())
	answered := one(api.V1CatalogGetScan(ctx, "green", "moss").Execute())
	defer os.Remove(answered.Name())
	fmt.Printf("scan %x\n", one2(io.ReadAll(answered)))

	names := []string{"shelves/green/books/fern", "shelves/green/books/moss"}
	fmt.Println("batch:", titles(one(api.V1CatalogBatchGetBooks(ctx, "green").Names(names).Execute()).Books))
	one(api.V1CatalogDeleteBook(ctx, "green", "moss").Execute())
	_, response, err := api.V1CatalogGetBook(ctx, "green", "moss").Execute()
	var gone *catalog.GenericOpenAPIError
	if errors.As(err, &gone) {
		status := gone.Model().(catalog.GoogleRpcStatus)
		fmt.Println("gone", response.StatusCode, status.GetMessage())
	}
}

func titles(books []catalog.Book) string {
	var words []string
	for _, book := range books {
		words = append(words, book.GetTitle())
	}
	return strings.Join(words, " ")
}

func one[Answer, Response any](answer Answer, _ Response, err error) Answer {
	return one2(answer, err)
}

func one2[Answer any](answer Answer, err error) Answer {
	if err != nil {
		panic(err)
	}
	return answer
}
