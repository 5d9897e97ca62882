import { expect, test } from "vitest";
import { readStream } from "../../../../../conformance/runner/stream-forms.ts";

const items = [{ text: '"}\\' }, { text: "{[" }];
const [first, second] = items.map((item) => JSON.stringify(item));
const error = '{"code":13,"message":"as asked"}';

test.each([
  { form: "lines", body: `${first}\n${second}\n` },
  { form: "values without separators", body: `${first}${second}` },
  { form: "an array", body: `[${first},${second}]` },
  { form: "envelopes", body: `{"result":${first}}\n{"result":${second}}\n` },
  { form: "events", body: `data: ${first}\n\n: comment\n\ndata:${second}\n\n`, type: "text/event-stream" },
  { form: "events with CRLF", body: `data: ${first}\r\n\r\ndata: ${second}\r\n\r\n`, type: "text/event-stream" },
  { form: "lines with an error at the end", body: `${first}\n${second}\n{"error":${error}}\n`, hasError: true },
  { form: "lines with a google.rpc.Status at the end", body: `${first}\n${second}\n${error}\n`, hasError: true },
  { form: "truncated lines", body: `${first}\n${second}\n`, isComplete: false, hasError: true },
  {
    form: "events with an error at the end",
    body: `data: ${first}\n\ndata: ${second}\n\nevent: error\ndata: ${error}\n\n`,
    type: "text/event-stream",
    hasError: true,
  },
])(
  "a stream as $form is parsed by readStream()",
  ({ body, type = "application/json", isComplete = true, hasError = false }) => {
    const response = { status: 200, header: [["content-type", type] as const], body: Buffer.from(body), isComplete };
    expect(readStream(response)).toEqual({ items, hasError });
  },
);
