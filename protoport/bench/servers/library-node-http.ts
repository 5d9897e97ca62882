import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { create, fromJsonString, type JsonValue, toJson, toJsonString } from "@bufbuild/protobuf";
import {
  BookSchema,
  ImportBooksRequestSchema,
  ImportBooksResponseSchema,
  ListBooksResponseSchema,
} from "../../testing/src/gen/library/v1/library_pb.ts";
import { maxBooks, makeBooks, takeBooks } from "../../testing/src/gateway/books.ts";
import { listen, serve } from "./serve.ts";

// The library on node:http, with protobuf-es's JSON. For the floor, JSON.parse and JSON.stringify convert plain objects
// that are not validated.

/** The functions that read and write the library's JSON. */
interface Library {
  getBook(id: number): string;
  listBooks(pageSize: number): string;
  createBook(text: string): string;
  importBooks(text: string): string;
}

const books = makeBooks(maxBooks);
const plainBooks: readonly JsonValue[] = books.map((book) => toJson(BookSchema, book));

const plain: Library = {
  getBook: (id) => JSON.stringify(plainBooks[id]),
  listBooks: (pageSize) => JSON.stringify({ books: takeBooks(plainBooks, pageSize) }),
  createBook: (text) => JSON.stringify(JSON.parse(text)),
  importBooks(text) {
    const request: { readonly books: readonly JsonValue[] } = JSON.parse(text);
    return JSON.stringify({ count: request.books.length });
  },
};

const typed: Library = {
  getBook: (id) => toJsonString(BookSchema, books[id] ?? create(BookSchema)),
  listBooks: (pageSize) =>
    toJsonString(ListBooksResponseSchema, create(ListBooksResponseSchema, { books: takeBooks(books, pageSize) })),
  createBook: (text) => toJsonString(BookSchema, fromJsonString(BookSchema, text)),
  importBooks(text) {
    const { length } = fromJsonString(ImportBooksRequestSchema, text).books;
    return toJsonString(ImportBooksResponseSchema, create(ImportBooksResponseSchema, { count: length }));
  },
};

const library = process.env["LIBRARY_JSON"] === "protobuf-es" ? typed : plain;

function respond(request: IncomingMessage, response: ServerResponse): void {
  const { method, url = "" } = request;
  if (url.startsWith("/v1/books:stream")) return stream(response);
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.from(responseBody(method, url, Buffer.concat(chunks).toString()));
    response.writeHead(200, { "content-type": "application/json", "content-length": body.byteLength }).end(body);
  });
}

function stream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  for (const book of plainBooks) response.write(`${JSON.stringify(book)}\n`);
  response.end();
}

function responseBody(method: string | undefined, url: string, body: string): string {
  if (url === "/v1/books:import") return library.importBooks(body);
  if (method === "POST") return library.createBook(body);
  const pageSize = /^\/v1\/books\?pageSize=(\d+)$/.exec(url)?.[1];
  return pageSize === undefined
    ? library.getBook(Number(url.slice("/v1/books/".length)))
    : library.listBooks(Number(pageSize));
}

await serve(() => listen(createServer(respond)));
