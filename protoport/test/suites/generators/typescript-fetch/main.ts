import { type Book, BookState, CatalogApi, Configuration, ResponseError } from "./client/index.ts";

// Requests an array instead of the stream's lines.
const headers = { accept: "application/json" };
const catalog = new CatalogApi(new Configuration({ basePath: process.argv[2] ?? "", headers }));
const [shelf, book] = ["green", "moss"];
const titles = (books: Book[] = []): string => books.map(({ title }) => title).join(" ");
const moss = { title: "Moss", serial: "9007199254740993", cover: "AAH+", labels: { soil: "damp" }, author: "Flora" };
const created = await catalog.v1CatalogCreateBook({ shelf, bookId: book, book: moss });
console.log("created", created.state, created.serial, created.cover, created.labels?.["soil"]);
await catalog.v1CatalogCreateBook({ shelf, bookId: "fern", book: { title: "Fern" } });

const first = await catalog.v1CatalogListBooks({ shelf, pageSize: 1 });
const second = await catalog.v1CatalogListBooks({ shelf, pageSize: 1, pageToken: first.nextPageToken ?? "" });
console.log(`pages: ${titles(first.books)}, ${titles(second.books)}, ${second.nextPageToken ?? "end"}`);

const change = { title: "Mosses" };
const ids = { shelf, book, updateMask: "title" };
const updated = await catalog.v1CatalogUpdateBook({ ...ids, v1CatalogUpdateBookRequest: change });
console.log("updated", updated.title, updated.author);
const v1CatalogLendBookRequest = { reader: "Ann", dueTime: new Date("2026-12-24T18:00:00Z") };
const loan = await catalog.v1CatalogLendBook({ shelf, book, v1CatalogLendBookRequest });
console.log("lent", loan.reader, loan.state, Number(loan.dueTime) / 1000);
console.log("out:", titles((await catalog.v1CatalogListBooks({ shelf, state: BookState.StateLent })).books));
console.log("watched:", titles(await catalog.v1CatalogWatchBooks({ shelf })));

await catalog.v1CatalogPutScan({ shelf, book, body: new Blob([new Uint8Array([0, 1, 254, 13, 10, 255])]) });
const scan = await catalog.v1CatalogGetScan({ shelf, book });
console.log("scan", Buffer.from(await scan.arrayBuffer()).toString("hex"));

const names = ["fern", "moss"].map((name) => `shelves/green/books/${name}`);
console.log("batch:", titles((await catalog.v1CatalogBatchGetBooks({ shelf, names })).books));
await catalog.v1CatalogDeleteBook({ shelf, book });
const failure: unknown = await catalog.v1CatalogGetBook({ shelf, book }).catch((error: unknown) => error);
if (!(failure instanceof ResponseError)) throw failure;
console.log("gone", failure.response.status, (await failure.response.json()).message);
