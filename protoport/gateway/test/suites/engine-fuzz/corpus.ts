import { Dice } from "../../../../testing/src/dice.ts";
import { dataFrame, type Field, frame, frameBytes, frameFlag, frameType, headersFrame } from "@protoport/testing/http";
// oxfmt-ignore
import { begun, getHeader, settingFrame, whole, windowUpdateFrame
} from "../../../../testing/src/http2/http2-requests.ts";
import { randomFrame, randomResponseFrame } from "../../../../testing/src/http2/random-frame.ts";

// The first inputs, and an input for each problem that was found. `client` gets what a server sends.

const text = (value: string): Buffer => Buffer.from(value, "latin1");
const post = (fields: string, body: string): string => `POST /a HTTP/1.1\r\nhost: x\r\n${fields}\r\n\r\n${body}`;
const inChunks = (body: string): string => post("transfer-encoding: chunked", body);

const requests = [
  "DELETE /orders/7 HTTP/1.1\r\nhost: x\r\nAuthorization: Bearer abc\r\n\r\n",
  post("content-length: 5", "order"),
  inChunks("5;a=b\r\norder\r\n0A\r\n0123456789\r\n0\r\nx: y\r\n\r\n"),
  post("expect: 100-continue\r\ncontent-length: 1\r\nX:\t \xe9 ", "!"),
  "\r\nGET /?d=1 HTTP/1.1\r\nhost:x\r\nconnection: keep-alive\r\n\r\n",
  "GET /e HTTP/1.0\r\nx: y\r\n\r\n",
  "OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
  "GET http://y/ HTTP/1.2\r\nhost: x\r\nconnection: close\r\n\r\n",
  "HEAD / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
];
/** Lines in which parsers differ, which allows request smuggling. */
const codings = ["chunked", "Chunked", "\tchunked", "chunked ", "chunked\t", "chunked,", "gzip, chunked", "identity"];
const sizeLines = ["3;", "3 ", "3;a;", "3;a ", "3;a", "3;a=b;c", '3;a="b \\" \xe9"', "3; a", "3 ;a", '3;a= "b" ; c'];
const trailers = ["content-length: 3", "transfer-encoding: chunked", "connection: close", "x: y"];

/** The requests of RFC 7541 C.3 (plain) and C.4 (Huffman), which use the dynamic table. */
const hpackRequests = [
  "828684410f7777772e6578616d706c652e636f6d 828684be58086e6f2d6361636865 828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
  "828684418cf1e3c2e5f23a6ba0ab90f4ff 828684be5886a8eb10649cbf 828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
].map((hex) => hex.split(" "));
const endHeaders = frameFlag.endHeaders;
const headers = (id: number, hex: string, flags: number): Buffer =>
  frameBytes(frame(frameType.headers, flags, id, Buffer.from(hex, "hex")));
const settings = frameBytes(frame(frameType.settings, 0, 0));
const response = "88400c636f6e74656e742d74797065106170706c69636174696f6e2f67727063";
const octets = Array.from('\0\x01\t\n\r \x7f\x80\xff!"#%(),/:;<@A[\\^`{|}~az09');
const values = ["", "0", "00", "-0", "0, 0", "*", "?a", "http://x/", "gopher", "a:b:c", "u@a", "Trailers", "CONNECT"];
const names = [":method", ":scheme", ":path", ":authority", ":protocol", ":status", "host", "te", "content-length"];
const more = ["connection", "keep-alive", "upgrade", "transfer-encoding", "cookie", "A"];

/** Returns a request with an odd field: another, a duplicate or a missing one, or an octet with a meaning in it. */
function oddHeader(dice: Dice): Buffer {
  const value = dice.oneOf([
    dice.oneOf(values),
    `a${dice.oneOf(octets)}b`,
    `${dice.oneOf(octets)}b`,
    `a${dice.oneOf(octets)}`,
  ]);
  const name = dice.oneOf([...names, ...more, `a${dice.oneOf(octets)}b`]);
  const known = getHeader.map(([field, was]): Field => [field, field === name && dice.roll(3) > 0 ? value : was]);
  const kept = known.filter(([field]) => field !== name || dice.roll(4) > 0);
  const header: Field[] = dice.roll(2) === 0 ? kept : [...kept, [name, value]];
  return frameBytes(headersFrame(dice.oneOf([1, 3, 5, 7, 9]), header, frameFlag.endStream));
}

// oxfmt-ignore
export const seeds: Readonly<Record<"http1" | "http2" | "client", readonly Buffer[]>> = { http1: [
    ...requests, requests.join(""), ...codings.map((coding) => post(`Transfer-Encoding:${coding}`, "0\r\n\r\n")),
    ...sizeLines.map((line) => inChunks(`${line}\r\nabc\r\n0\r\n\r\n`)),
    ...trailers.map((field) => inChunks(`0\r\n${field}\r\n\r\n`)), `${requests.join("")}${"x".repeat(20_000)}`,
  ].map(text),
  http2: [...Array.from({ length: 200 }, (_, i) => oddHeader(new Dice(i))), ...hpackRequests.map((blocks) =>
      Buffer.concat(blocks.map((hex, i) => headers(2 * i + 1, hex, endHeaders | frameFlag.endStream))),
    ), Buffer.concat([begun(1), dataFrame(1, Buffer.from("order"), frameFlag.endStream)].map(frameBytes)),
    Buffer.concat([begun(1), whole(3), windowUpdateFrame(0, 9), dataFrame(1, Buffer.alloc(9), 0)].map(frameBytes)),
    Buffer.concat([
      headers(1, "8286", 0),
      frameBytes(frame(frameType.continuation, endHeaders, 1, Buffer.from("8441017a", "hex"))),
      frameBytes(dataFrame(1, Buffer.from([2, 1, 0, 0]), frameFlag.padded | frameFlag.endStream)),
    ]),
    Buffer.concat([settingFrame(4, 1), whole(1), settingFrame(1, 0), whole(3), settingFrame(4, 100)].map(frameBytes))],
  client: [Buffer.concat([settings, headers(1, response, endHeaders), frameBytes(dataFrame(1, Buffer.alloc(9), 1))]),
    Buffer.concat([settings, headers(1, response, endHeaders), headers(1, "8d", endHeaders | frameFlag.endStream)]),
    Buffer.concat([settings, frameBytes(frame(frameType.goAway, 0, 0, Buffer.alloc(8)))])],
};

const words =
  "\r\n|\n|\r|\0|\x0b|\xa0|:| |\t|,|;|0\r\n\r\n|5; a|\r\n |+|content-length: 3\r\n|Content-Length: 05\r\n|transfer-encoding: chunked\r\n|Transfer-Encoding : chunked\r\n|connection: close\r\n|HTTP/1.1".split(
    "|",
  );

/** What mutations insert. */
export const tokens: Readonly<Record<keyof typeof seeds, readonly ((dice: Dice) => Buffer)[]>> = {
  http1: words.map((word) => () => text(word)),
  http2: [randomFrame, randomFrame, oddHeader],
  client: [randomResponseFrame],
};
