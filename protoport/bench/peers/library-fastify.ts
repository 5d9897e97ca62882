import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import fastify from "fastify";
import {
  BookSchema,
  ImportBooksRequestSchema,
  ImportBooksResponseSchema,
  ListBooksResponseSchema,
} from "../../testing/src/gen/library/v1/library_pb.ts";
import { maxBooks, makeBooks, takeBooks } from "../../testing/src/gateway/books.ts";
import { listen, serve } from "../servers/serve.ts";

// The library on fastify 5. By default, each body and response has a schema, as fastify's users write it, and books are
// plain objects. With LIBRARY_JSON=protobuf-es, the server converts bodies to messages, as the gateway does.
const string = { type: "string" } as const;
const int32 = { type: "integer", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 } as const;
const int64 = { type: "string", pattern: "^-?[0-9]+$" } as const;
const book = {
  type: "object",
  additionalProperties: false,
  properties: {
    id: int64,
    title: string,
    authors: { type: "array", items: string },
    genre: { type: "string", enum: ["GENRE_UNSPECIFIED", "GENRE_NOVEL", "GENRE_SCIENCE", "GENRE_POETRY"] },
    pageCount: int32,
    price: {
      type: "object",
      additionalProperties: false,
      properties: { currencyCode: string, units: int64, nanos: int32 },
    },
    rating: { type: "number" },
    inPrint: { type: "boolean" },
    publishTime: { type: "string", format: "date-time" },
    updateTime: { type: "string", format: "date-time" },
    labels: { type: "object", additionalProperties: string },
    summary: string,
  },
} as const;
const list = { type: "object", properties: { books: { type: "array", items: book } } } as const;
const count = { type: "object", properties: { count: int32 } } as const;

const app = fastify();

if (process.env["LIBRARY_JSON"] === "protobuf-es") serveMessages();
else serveObjects();

await app.ready();
await serve(() => listen(app.server));

function serveObjects(): void {
  const books = makeBooks(maxBooks).map((each) => toJson(BookSchema, each));
  app.get<{ Querystring: { pageSize: number } }>(
    "/v1/books",
    { schema: { querystring: { type: "object", properties: { pageSize: int32 } }, response: { 200: list } } },
    (request, reply) => {
      reply.send({ books: takeBooks(books, request.query.pageSize) });
    },
  );
  app.get<{ Params: { id: string } }>(
    "/v1/books/:id",
    { schema: { params: { type: "object", properties: { id: int64 } }, response: { 200: book } } },
    (request, reply) => {
      reply.send(books[Number(request.params.id)]);
    },
  );
  app.post("/v1/books", { schema: { body: book, response: { 200: book } } }, (request, reply) => {
    reply.send(request.body);
  });
  app.post<{ Body: { books: readonly object[] } }>(
    "/v1/books::import",
    { schema: { body: list, response: { 200: count } } },
    (request, reply) => {
      reply.send({ count: request.body.books.length });
    },
  );
}

// Registers handlers that get messages. In a message, an int64 is a bigint, an enum is a number, and a time is a
// Timestamp.
function serveMessages(): void {
  const books = makeBooks(maxBooks);
  app.get<{ Querystring: { pageSize: string } }>("/v1/books", (request, reply) => {
    const taken = takeBooks(books, Number(request.query.pageSize));
    reply.send(toJson(ListBooksResponseSchema, create(ListBooksResponseSchema, { books: taken })));
  });
  app.get<{ Params: { id: string } }>("/v1/books/:id", (request, reply) => {
    reply.send(toJson(BookSchema, books[Number(request.params.id)] ?? create(BookSchema)));
  });
  app.post<{ Body: JsonValue }>("/v1/books", (request, reply) => {
    reply.send(toJson(BookSchema, fromJson(BookSchema, request.body)));
  });
  app.post<{ Body: JsonValue }>("/v1/books::import", (request, reply) => {
    const { length } = fromJson(ImportBooksRequestSchema, request.body).books;
    reply.send(toJson(ImportBooksResponseSchema, create(ImportBooksResponseSchema, { count: length })));
  });
}
