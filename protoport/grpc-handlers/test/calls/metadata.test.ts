import { Metadata } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { LazyHeaders } from "../../../gateway/src/protocols/index.ts";
import { appendMetadata, toMetadata } from "../../src/calls/metadata.ts";

function headersOf(...fields: readonly (readonly [name: string, value: string | Buffer])[]): string[][] {
  const [metadata, headers] = [new Metadata(), new Headers()];
  for (const [name, value] of fields) metadata.add(name, value);
  appendMetadata(headers, metadata);
  return [...headers];
}

test.each([
  "grpc-status",
  "grpc-message",
  "grpc-status-details-bin",
  "grpc-encoding",
  "content-type",
  "content-length",
])("the field %s cannot be set by response metadata", (name) => {
  expect(headersOf([name, name.endsWith("-bin") ? Buffer.from("7") : "7"], ["x-own", "1"])).toEqual([["x-own", "1"]]);
});

test("the metadata of a response can set grpc-retry-pushback-ms", () =>
  expect(headersOf(["grpc-retry-pushback-ms", "50"])).toEqual([["grpc-retry-pushback-ms", "50"]]));

test("the response header contains all metadata values for one key", () =>
  expect(headersOf(["x-own", "1"], ["x-own", "2"])).toEqual([["x-own", "1, 2"]]));

test("comma-separated values in a binary request field become separate metadata values", () => {
  const metadata = toMetadata(new Headers({ "x-key-bin": "AP8B, Yg" }));
  expect(metadata.get("x-key-bin")).toEqual([Buffer.from([0, 255, 1]), Buffer.from("b")]);
});

test("request metadata omits the protocols' fields in any case", () => {
  // oxfmt-ignore
  const fields = [
    ":path", "/", "Content-Type", "application/json", "Host", "a", "Grpc-Timeout", "1S", "TE", "trailers",
  ];
  const metadata = toMetadata(new LazyHeaders([...fields, "X-Key-Bin", "AP8B", "X-Text", "1", "x-text", "2"]));
  expect(metadata.getMap()).toEqual({ "x-key-bin": Buffer.from([0, 255, 1]), "x-text": "1, 2" });
});
