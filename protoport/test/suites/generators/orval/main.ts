import * as catalog from "./client/catalog.ts";

const [shelf, book] = ["green", "moss"];
const titles = (books: catalog.Book[] = []): string => books.map(({ title }) => title).join(" ");
const moss = { title: "Moss", serial: "9007199254740993", cover: "AAH+", labels: { soil: "damp" }, author: "Flora" };

/** Returns the data in a response with status 200, and throws others. */
function ok<Answer extends { readonly status: unknown; readonly data: unknown }>(
  response: Answer,
): Extract<Answer, { readonly status: 200 }>["data"] {
  if (response.status !== 200) throw new Error(JSON.stringify(response));
  return response.data as Extract<Answer, { readonly status: 200 }>["data"];
}

const created = ok(await catalog.v1CatalogCreateBook(shelf, moss, { bookId: book }));
console.log("created", created.state, created.serial, created.cover, created.labels?.["soil"]);
ok(await catalog.v1CatalogCreateBook(shelf, { title: "Fern" }, { bookId: "fern" }));

const first = ok(await catalog.v1CatalogListBooks(shelf, { pageSize: 1 }));
const second = ok(await catalog.v1CatalogListBooks(shelf, { pageSize: 1, pageToken: first.nextPageToken ?? "" }));
console.log(`pages: ${titles(first.books)}, ${titles(second.books)}, ${second.nextPageToken ?? "end"}`);

const updated = ok(await catalog.v1CatalogUpdateBook(shelf, book, { title: "Mosses" }, { updateMask: "title" }));
console.log("updated", updated.title, updated.author);
const loan = ok(await catalog.v1CatalogLendBook(shelf, book, { reader: "Ann", dueTime: "2026-12-24T18:00:00Z" }));
console.log("lent", loan.reader, loan.state, Date.parse(loan.dueTime ?? "") / 1000);
console.log("out:", titles(ok(await catalog.v1CatalogListBooks(shelf, { state: "STATE_LENT" })).books));
const watched = await catalog.v1CatalogWatchBooks(shelf, { headers: { accept: "application/json" } });
console.log("watched:", titles("stream" in watched ? JSON.parse(await watched.stream.text()) : undefined));

ok(await catalog.v1CatalogPutScan(shelf, book, new Blob([new Uint8Array([0, 1, 254, 13, 10, 255])])));
console.log("scan", Buffer.from(await ok(await catalog.v1CatalogGetScan(shelf, book)).arrayBuffer()).toString("hex"));

const names = ["fern", "moss"].map((name) => `shelves/green/books/${name}`);
console.log("batch:", titles(ok(await catalog.v1CatalogBatchGetBooks(shelf, { names })).books));
ok(await catalog.v1CatalogDeleteBook(shelf, book));
const { status, data } = await catalog.v1CatalogGetBook(shelf, book);
console.log("gone", status, "message" in data ? data.message : data);
