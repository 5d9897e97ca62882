import { expect, test } from "vitest";
import { requestPathPrefixOf } from "../../../src/plantstore/server/setting-readers.ts";

test.each([
  { url: undefined, want: "" },
  { url: "https://plants.example", want: "" },
  { url: "https://plants.example/", want: "" },
  { url: "https://plants.example/api", want: "/api" },
  { url: "https://plants.example/api/v1/", want: "/api/v1" },
])('the public URL $url makes the path prefix "$want"', ({ url, want }) => {
  expect(requestPathPrefixOf(url === undefined ? undefined : new URL(url))).toBe(want);
});
