import { isDeepStrictEqual } from "node:util";
import { create, type JsonValue, toJson, toJsonString } from "@bufbuild/protobuf";
import {
  BookSchema,
  ImportBooksRequestSchema,
  ListBooksResponseSchema,
} from "../testing/src/gen/library/v1/library_pb.ts";
import { ownName } from "./figures.ts";
import { ownWithHandlers, ownWithMessages } from "./library-scenarios.ts";
import type { LoadShape } from "./load/load.ts";
import type { Probe } from "./probe.ts";
import { http1Load, installedPeers, type Scenario, server, type Subject } from "./scenarios.ts";
import { maxBooks, makeBook, makeBooks } from "../testing/src/gateway/books.ts";

const plainFloor = server("node:http, plain JSON", "servers/library-node-http");
const own = server(ownName, "servers/library");

const subjects: readonly Subject[] = [
  plainFloor,
  server("node:http, protobuf-es", "servers/library-node-http", { LIBRARY_JSON: "protobuf-es" }),
  own,
  ...installedPeers(["library-fastify"]).flatMap((peer) => [
    { ...peer, name: "fastify with schemas" },
    { ...peer, name: "fastify, protobuf-es", environment: { LIBRARY_JSON: "protobuf-es" } },
  ]),
];

const book = makeBook(0);
const get = { httpMethod: "GET", header: {}, body: undefined };
const post = { httpMethod: "POST", header: { "content-type": "application/json" } };
const imported = create(ImportBooksRequestSchema, { books: makeBooks(maxBooks) });

/** Scenarios with typical messages as JSON over REST. The server or the client sends one book or a list of books. */
export const bookScenarios: readonly Scenario[] = [
  {
    ...scenario("rest-get-book", "a book", { ...get, path: "/v1/books/0" }, toJson(BookSchema, book)),
    subjects: [...subjects, ownWithHandlers, ownWithMessages],
  },
  {
    ...scenario(
      "rest-stream-books",
      `a stream of ${String(maxBooks)} books`,
      { ...get, path: `/v1/books:stream?pageSize=${String(maxBooks)}` },
      makeBooks(maxBooks).map((each) => toJson(BookSchema, each)),
      (text) =>
        text
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line)),
    ),
    subjects: [plainFloor, own, ownWithHandlers, ownWithMessages],
  },
  ...[10, maxBooks].map((count) =>
    scenario(
      `rest-list-${String(count)}-books`,
      `a list of ${String(count)} books`,
      { ...get, path: `/v1/books?pageSize=${String(count)}` },
      toJson(ListBooksResponseSchema, create(ListBooksResponseSchema, { books: makeBooks(count) })),
    ),
  ),
  scenario(
    "rest-create-book",
    "a book from the client and back",
    { ...post, path: "/v1/books", body: Buffer.from(toJsonString(BookSchema, book)) },
    toJson(BookSchema, book),
  ),
  scenario(
    "rest-import-books",
    `${String(maxBooks)} books from the client`,
    { ...post, path: "/v1/books:import", body: Buffer.from(toJsonString(ImportBooksRequestSchema, imported)) },
    { count: maxBooks },
  ),
];

function scenario(
  name: string,
  title: string,
  request: Omit<LoadShape, "connections" | "streams">,
  response: JsonValue,
  parse?: (text: string) => unknown,
): Scenario {
  const shape = { ...request, connections: 16, streams: 1 };
  const full = `${title} as JSON over REST, HTTP/1.1, 16 connections`;
  return { name, title: full, shape, load: http1Load(shape), probe: responseProbe(shape, response, parse), subjects };
}

/** Returns a probe that requires a response with this JSON value, in any order and spacing. */
export function responseProbe(
  { httpMethod: method, header: headers, body, path }: LoadShape,
  expected: JsonValue,
  parse: (text: string) => unknown = JSON.parse,
): Probe {
  return async (port) => {
    const response = await fetch(`http://127.0.0.1:${String(port)}${path}`, { method, headers, body: body ?? null });
    const text = await response.text();
    if (!response.ok || !isDeepStrictEqual(parse(text), expected))
      throw new Error(`unexpected response: ${text.slice(0, 200)}`);
  };
}
