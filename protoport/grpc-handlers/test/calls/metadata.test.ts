import { Metadata } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { LazyHeaders } from "../../../gateway/src/protocols/index.ts";
import { appendMetadata, toMetadata } from "../../src/calls/metadata.ts";

test.each([
  "grpc-status",
  "grpc-message",
  "grpc-status-details-bin",
  "grpc-encoding",
  "content-type",
  "content-length",
])("the field %s cannot be set by response metadata", (name) => {
  const metadata = new Metadata();
  metadata.set(name, name.endsWith("-bin") ? Buffer.from("7") : "7");
  metadata.set("x-own", "1");
  const headers = new Headers();
  appendMetadata(headers, metadata);
  expect([...headers]).toEqual([["x-own", "1"]]);
});

test("the metadata of a response can set grpc-retry-pushback-ms", () => {
  const metadata = new Metadata();
  metadata.set("grpc-retry-pushback-ms", "50");
  const headers = new Headers();
  appendMetadata(headers, metadata);
  expect([...headers]).toEqual([["grpc-retry-pushback-ms", "50"]]);
});

test("the response header contains all metadata values for one key", () => {
  const metadata = new Metadata();
  for (const value of ["1", "2"]) metadata.add("x-own", value);
  const headers = new Headers();
  appendMetadata(headers, metadata);
  expect([...headers]).toEqual([["x-own", "1, 2"]]);
});

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
