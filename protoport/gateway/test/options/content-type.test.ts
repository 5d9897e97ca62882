import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { RestOptions } from "../../src/index.ts";
import { createOpenApi } from "../../src/openapi/index.ts";
import { serveByFetch } from "../../../testing/src/gateway/fetch-serving.ts";

const selector = "greenhouse.v1.GreenhouseService";
const own = "application/vnd.bed+json";

async function typeOf(rest: RestOptions, path: string, header: Record<string, string> = {}): Promise<string | null> {
  const fetch = serveByFetch(
    {
      getReading: ({ sensor }) => {
        if (sensor === "none") throw new ConnectError("no sensor", Code.NotFound);
        return { sensor };
      },
      async *watchReadings({ sensor }) {
        if (sensor === "none") throw new ConnectError("no sensor", Code.NotFound);
        yield { sensor };
      },
    },
    { rest },
  );
  return (await fetch(new Request(`http://a${path}`, { headers: header }))).headers.get("content-type");
}

const message = "/sensors/palm/reading";
const error = "/sensors/none/reading";
const stream = "/sensors/palm/readings";
const errorRecord = (): { httpStatus: number; body: string } => ({ httpStatus: 400, body: "own" });

interface Case {
  readonly name: string;
  readonly rest?: RestOptions;
  readonly path: string;
  readonly accept?: string;
  readonly type: string;
}

const plain = "application/json";
const problem = "application/problem+json";
const problemRecord = () => ({ ...errorRecord(), contentType: problem });

test.each<Case>([
  { name: "a message", path: message, type: own },
  { name: "a message for a client that accepts application/json", path: message, type: own, accept: plain },
  { name: "an error", path: error, type: own },
  { name: "an error in the Google format", rest: { errors: "google" }, path: error, type: own },
  { name: "an error before a stream", path: "/sensors/none/readings", type: own },
  { name: "the error for an unknown path", path: "/nowhere", type: own },
  { name: "an error record without a content type", rest: { errorRecord }, path: error, type: own },
  { name: "an error record with a content type", rest: { errorRecord: problemRecord }, path: error, type: problem },
  { name: "an error as problem details", rest: { errors: "problem" }, path: error, type: problem },
  { name: "a stream", path: stream, type: "application/x-ndjson" },
  { name: "a stream as a JSON array", path: stream, type: plain, accept: plain },
  { name: "a message with the profile a2a", rest: { profile: "a2a" }, path: message, type: "application/a2a+json" },
  { name: "a Connect response", path: `/${selector}/GetReading?encoding=json&message={}`, type: "application/json" },
])("contentType $name is sent with Content-Type $type over HTTP", async ({ rest, path, type, accept = "*/*" }) => {
  expect(await typeOf(rest?.profile === undefined ? { contentType: own, ...rest } : rest, path, { accept })).toBe(type);
});

test("contentType appears in the OpenAPI document for responses and errors", () => {
  const info = { title: "t", version: "1" };
  const { paths } = createOpenApi([GreenhouseService], { info, rest: { contentType: own } });
  const { responses } = paths[message.replace("palm", "{sensor}")]?.get ?? {};
  const types = Object.entries(responses ?? {}).map(([status, { content = {} }]) => [status, Object.keys(content)]);
  expect(types).toEqual([
    ["200", [own]],
    ["4XX", [own]],
    ["5XX", [own]],
  ]);
});

test.each(["text/json", "application/a2a", "application/json; charset=utf-8", "application/+json", "", 1])(
  "the value %j is rejected",
  (contentType) =>
    expect(Reflect.apply(typeOf, undefined, [{ contentType }, message])).rejects.toThrow(
      `rest.contentType must be application/json or application/…+json, got ${JSON.stringify(contentType)}`,
    ),
);
