import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  corpusGroups,
  describeRequest,
  expectResponse,
  toRequest,
} from "../../../../../gateway/test/wire/corpus/corpus.ts";
import { createTestGateway, listenForTests, openHttp2 } from "@protoport/testing";
import { failures } from "../../../../../testing/src/transcoding/failures.ts";
import { fetchCases, overFetch } from "../../../../../testing/src/transcoding/over-fetch.ts";
import { createEchoOptions, createSinkOptions } from "./echo-handlers.ts";
import { libraries, type Library } from "./libraries.ts";

// The transcoding suite and the corpus, with handlers that read and write messages with a grpc-js library. Connect
// handlers pass all cases. The others fail the listed ones, because their library changes the message.

const protoKey = "the objects of ts-proto cannot have the key __proto__";
const dates = "the Date of ts-proto has milliseconds";
const jsonName = "the descriptors of proto-loader have no json_name";
const mapKeys = "protobufjs writes other keys of maps than it reads";
const depth = "the response is one message deeper than the request, whose depth is the limit";
const extensions = "ts-proto drops extensions";
const zeros = "ts-proto omits values of proto2 that equal their default";

interface Exceptions {
  /** The reasons, by the transcoding suite's case ids. */
  readonly cases: Readonly<Record<string, string>>;
  /** The reasons, by how the corpus's requests begin. */
  readonly requests: Readonly<Record<string, string>>;
}

const deepQuery = "GET /v1/query?child.child.child.child.";
// oxfmt-ignore
const tsProto: Exceptions = { cases: { "body.map.proto-key": protoKey, "query.well-known.timestamp-nanos": dates,
  "type.timestamp.micros": dates, "type.timestamp.nanos": dates, "type.timestamp.max": dates,
  "type.timestamp.before-epoch": dates }, requests: { [deepQuery]: depth,
  'POST /v1/shelves:get with {"masksByName":{"a":"addressLine1","__proto__":"*"}}': protoKey,
  'POST /v1/legacies with {"name":"a","[kitchensink.v1.note]":"b"': extensions,
  'POST /v1/legacies with {"name":"a","[kitchensink.v1.note]":""': extensions,
  'POST /kitchensink.v1.LegacySink/Keep with {"name":"a","[kitchensink.v1.note]":"b"': extensions,
  'POST /kitchensink.v1.LegacySink/Keep with {"name":"a","[kitchensink.v1.note]":""': extensions,
  'POST /v1/legacies with {"name":""}': zeros, 'POST /kitchensink.v1.LegacySink/Keep with {"name":""}': zeros,
  'PUT /v1/legacies/a with {"number":7}': zeros, "GET /v1/legacies?name=a&child.name=b&child.number=7": zeros } };

const exceptions: Readonly<Record<keyof typeof libraries, Exceptions>> = {
  "ts-proto": tsProto,
  "ts-proto with messages": { ...tsProto, cases: { "body.map.proto-key": protoKey } },
  // oxfmt-ignore
  "proto-loader": { cases: { "body.name.own": jsonName, "query.name.json-name": jsonName,
    "response.return.own-name": jsonName, "body.map.int64": mapKeys, "body.map.bool": mapKeys,
    "response.return.map": mapKeys }, requests: { [deepQuery]: depth, "GET /v1/customName/a": jsonName,
    "GET /v1/query?customName=a&": jsonName, "GET /v1/query?customName=a": jsonName,
    "GET /v1/query?odd_name=a": jsonName } },
};

const requests = corpusGroups.flatMap(({ cases }) => cases);

describe.each(["ts-proto", "ts-proto with messages", "proto-loader"] as const)(
  "grpc-js handlers with %s messages",
  (name) => {
    const expected = exceptions[name];
    let library: Library;
    beforeAll(() => void (library = libraries[name]()));
    afterAll(() => library[Symbol.dispose]());

    test("pass all transcoding cases over Fetch except the listed ones", async () => {
      const { fetch } = createTestGateway({ ...(await createEchoOptions(library)), onFault: () => {} });
      const failed = await failures(fetchCases, overFetch(fetch));
      const isListed = (line: string): boolean => Object.keys(expected.cases).some((id) => line.startsWith(`${id}: `));
      expect(failed.filter((line) => !isListed(line))).toEqual([]);
      expect(failed).toHaveLength(Object.keys(expected.cases).length);
    });

    test("pass all requests of the corpus except the listed ones", async () => {
      const options = await createSinkOptions(library);
      await using server = await listenForTests(createTestGateway({ ...options, onFault: () => {} }));
      using http2 = await openHttp2(server.address);
      const failed: string[] = [];
      for (const row of requests) {
        const response = await http2.exchange(toRequest(row));
        try {
          expectResponse(response, row.want);
        } catch (error) {
          failed.push(`${describeRequest(row)}: ${String(error)}`);
        }
      }
      const starts = Object.keys(expected.requests);
      expect(failed.filter((line) => !starts.some((start) => line.startsWith(start)))).toEqual([]);
      expect(failed).toHaveLength(starts.length);
    });
  },
);
