import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { photosIn } from "../../examples/streams/photos.ts";
import { createGateway, type Gateway } from "../../gateway/src/index.ts";
import { exchangeFetch, type Field, fieldValue, type HttpResponse, openFetchUpload } from "@protoport/testing/http";
import { createTempFolder } from "@protoport/testing/process";

// The photos in protoport/examples/streams. test/suites/browser tests its pages, test/suites/clients tests it with curl.

const folder = createTempFolder();
const photo = randomBytes(200_000);
let gateway: Gateway;
let etag: string;

const ask = async (
  [httpMethod, path]: readonly [string, string],
  header: readonly Field[] = [],
  body?: Uint8Array,
): Promise<HttpResponse> =>
  await exchangeFetch(gateway.fetch, { httpMethod, path, header, ...(body !== undefined && { body }) });

beforeAll(async () => {
  gateway = createGateway({ routes: photosIn(folder.path) });
  const put = await ask(["PUT", "/photos/palm"], [], photo);
  expect([put.httpStatus, put.body.toString()]).toEqual([201, '{"name":"palm","bytes":"200000"}']);
  etag = fieldValue((await ask(["HEAD", "/photos/palm"])).header, "etag") ?? "";
});
afterAll(() => folder[Symbol.dispose]());

describe("a photo", () => {
  test("is downloaded unchanged, with its length and ETag", async () => {
    const { httpStatus, header, body } = await ask(["GET", "/photos/palm"]);
    const fields = ["content-type", "content-length", "accept-ranges", "etag"].map((name) => fieldValue(header, name));
    expect([httpStatus, ...fields]).toEqual([200, "image/jpeg", "200000", "bytes", etag]);
    expect(body.equals(photo)).toBe(true);
  });

  // The bytes that are sent; none with 304.
  const complete = [0, 200_000] as const;
  test.each<[header: readonly (readonly [string, string])[], sent: readonly [number, number], want: number]>(
    // oxfmt-ignore
    [
      [[["range", "bytes=0-9"]], [0, 10], 206],
      [[["range", "bytes=100000-"]], [100_000, 200_000], 206],
      [[["range", "bytes=-5"]], [199_995, 200_000], 206],
      [[["range", "bytes=9-0"]], complete, 200],
      [[["range", "bytes=0-1,3-4"]], complete, 200],
      [[["if-none-match", "TAG"]], [0, 0], 304],
      [[["if-none-match", '"other"']], complete, 200],
      [[["if-range", "TAG"], ["range", "bytes=0-9"]], [0, 10], 206],
      [[["if-range", '"other"'], ["range", "bytes=0-9"]], complete, 200],
    ],
  )("requested with $0 has the bytes $1 in a $2 response", async (header, [from, to], want) => {
    const fields = header.map(([name, value]) => [name, value.replace("TAG", etag)] as const);
    const response = await ask(["GET", "/photos/palm"], fields);
    expect(response.httpStatus).toBe(want);
    expect(response.body.equals(photo.subarray(from, to))).toBe(true);
    const range = want === 206 ? `bytes ${from}-${to - 1}/200000` : undefined;
    expect(fieldValue(response.header, "content-range")).toBe(range);
  });

  test.each(["bytes=200000-", "bytes=-0"])("with the range %s is refused with 416", async (range) => {
    const { httpStatus, header, body } = await ask(["GET", "/photos/palm"], [["range", range]]);
    expect([httpStatus, fieldValue(header, "content-range")]).toEqual([416, "bytes */200000"]);
    expect(JSON.parse(body.toString())).toMatchObject({ status: "OUT_OF_RANGE" });
  });

  test("can be empty", async () => {
    expect((await ask(["PUT", "/photos/none"], [], Buffer.of())).httpStatus).toBe(201);
    const { httpStatus, header } = await ask(["GET", "/photos/none"]);
    expect([httpStatus, fieldValue(header, "content-length")]).toEqual([200, "0"]);
  });

  test.each([
    { path: "/photos/nowhere", want: 404 },
    { path: "/photos/..%2Fpalm", want: 400 },
  ])("at $path is not found", async ({ path, want }) => expect((await ask(["GET", path])).httpStatus).toBe(want));

  test("is not changed by an aborted upload", async () => {
    {
      using upload = openFetchUpload(gateway.fetch, ["PUT", "/photos/palm"], []);
      upload.write(Buffer.from("half"));
      await expect.poll(() => readdirSync(folder.path).some((name) => name.endsWith(".part"))).toBe(true);
    }
    await expect.poll(() => readdirSync(folder.path).some((name) => name.endsWith(".part"))).toBe(false);
    expect((await ask(["GET", "/photos/palm"])).body.equals(photo)).toBe(true);
  });
});
