import { expect, test } from "vitest";
import { parseProviderUrl } from "../src/fetch-text.ts";

test.each([
  "https://id.example/keys",
  "http://localhost:8080/keys",
  "http://127.0.0.1/keys",
  "http://127.9.9.9/",
  "http://[::1]:9000/",
  "http://0x7f.1/",
])('parseProviderUrl returns "%s" as a URL', (text) => {
  expect(parseProviderUrl(text)).toEqual({ kind: "value", value: new URL(text) });
});

test.each([
  { text: "http://id.example/keys", want: /must use https/ },
  { text: "http://127.0.0.1.evil.example/", want: /must use https/ },
  { text: "http://localhost.evil.example/", want: /must use https/ },
  { text: "http://10.0.0.1/", want: /must use https/ },
  { text: "http://[::ffff:10.0.0.1]/", want: /must use https/ },
  { text: "file:///etc/keys", want: /must use https/ },
  { text: "data:application/json,{}", want: /must use https/ },
  { text: "https://user@id.example/", want: /must not contain a user name/ },
  { text: "https://user:secret@id.example/", want: /must not contain a user name/ },
  { text: "https://:secret@id.example/", want: /must not contain a user name or password/ },
  { text: "id.example/keys", want: /is not a valid URL/ },
  { text: "", want: /is not a valid URL/ },
])('parseProviderUrl returns a problem for "$text"', ({ text, want }) => {
  expect(parseProviderUrl(text)).toEqual({ kind: "problems", problems: [expect.stringMatching(want)] });
});
