import createClient from "openapi-fetch";
import type { components, paths } from "./client/schema.ts";

const client = createClient<paths>({ baseUrl: process.argv[2] ?? "" });
const [shelf, book] = ["green", "moss"];
const titles = (books: components["schemas"]["Book"][] = []): string => books.map(({ title }) => title).join(" ");
const moss = { title: "Moss", serial: "9007199254740993", cover: "AAH+", labels: { soil: "damp" }, author: "Flora" };

const put = (bookId: string, body: components["schemas"]["Book"]) =>
  client.POST("/v1/shelves/{shelf}/books", { params: { path: { shelf }, query: { bookId } }, body });
const { data: created } = await put(book, moss);
console.log("created", created?.state, created?.serial, created?.cover, created?.labels?.["soil"]);
await put("fern", { title: "Fern" });

const list = async (query: { pageSize?: number; pageToken?: string; state?: components["schemas"]["Book.State"] }) =>
  (await client.GET("/v1/shelves/{shelf}/books", { params: { path: { shelf }, query } })).data;
const first = await list({ pageSize: 1 });
const second = await list({ pageSize: 1, pageToken: first?.nextPageToken ?? "" });
console.log(`pages: ${titles(first?.books)}, ${titles(second?.books)}, ${second?.nextPageToken ?? "end"}`);

const path = { shelf, book };
const { data: updated } = await client.PATCH("/v1/shelves/{shelf}/books/{book}", {
  params: { path, query: { updateMask: "title" } },
  body: { title: "Mosses" },
});
console.log("updated", updated?.title, updated?.author);
const { data: loan } = await client.POST("/v1/shelves/{shelf}/books/{book}:lend", {
  params: { path },
  body: { reader: "Ann", dueTime: "2026-12-24T18:00:00Z" },
});
console.log("lent", loan?.reader, loan?.state, Date.parse(loan?.dueTime ?? "") / 1000);
console.log("out:", titles((await list({ state: "STATE_LENT" }))?.books));
const { data: watched } = await client.GET("/v1/shelves/{shelf}/books:watch", {
  params: { path: { shelf } },
  headers: { accept: "application/json" },
});
// Its types have one form for a stream or another.
console.log("watched:", titles([watched ?? []].flat()));

const scan = "/v1/shelves/{shelf}/books/{book}/scan";
await client.PUT(scan, {
  params: { path },
  // In these types, binary data is a string.
  body: new Blob([new Uint8Array([0, 1, 254, 13, 10, 255])]) as unknown as string,
  bodySerializer: (body) => body,
  headers: { "content-type": "application/octet-stream" },
});
const { data: bytes } = await client.GET(scan, { params: { path }, parseAs: "arrayBuffer" });
console.log("scan", Buffer.from(bytes as unknown as ArrayBuffer).toString("hex"));

const names = ["fern", "moss"].map((name) => `shelves/green/books/${name}`);
const { data: batch } = await client.GET("/v1/shelves/{shelf}/books:batchGet", {
  params: { path: { shelf }, query: { names } },
});
console.log("batch:", titles(batch?.books));
await client.DELETE("/v1/shelves/{shelf}/books/{book}", { params: { path } });
const { response, error } = await client.GET("/v1/shelves/{shelf}/books/{book}", { params: { path } });
console.log("gone", response.status, error?.message);
