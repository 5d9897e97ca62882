import { expect, test, vi } from "vitest";
import { defaultLimits, freeBuffer, type HttpProblem, ownPiece } from "../../../gateway/src/exchange/index.ts";
import type { Http1RequestHead } from "../../src/http1/index.ts";
import { RequestReader } from "../../src/http1/request-reader.ts";

test("a reader that has stopped holds nothing of what had arrived", () => {
  const parts = { onHead: () => {}, onPiece: () => false, onBodyEnd: () => {}, onRequestError: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  reader.read(Buffer.from("GET / HTTP/1.1\r\n"));
  expect(reader.incoming.unusedBytes).toBe(16);
  reader.stop();
  expect(reader.incoming.unusedBytes).toBe(0);
});

test("what is left of a chunk is kept in a copy, though it be a byte", () => {
  const parts = { onHead: () => {}, onPiece: () => false, onBodyEnd: () => {}, onRequestError: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  const chunk = Buffer.from("G");
  reader.read(chunk);
  chunk.fill(0);
  expect(reader.incoming.bytes.toString()).toBe("G");
});

test("a shorter head is read once, too, though a longer one was kept before it", () => {
  const sections: unknown[] = [];
  const onHead = ({ section }: Http1RequestHead): void => void sections.push(section);
  const parts = { onHead, onPiece: () => false, onBodyEnd: () => {}, onRequestError: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  for (const host of ["orders.example", "x", "x"]) {
    reader.read(Buffer.from(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`));
    reader.stage = "head";
  }
  expect(sections.map((section) => sections.indexOf(section))).toEqual([0, 1, 1]);
});

test("a request line that has not ended is refused once no method can be so long that its target is not", () => {
  const refused = [0, 1].map((more) => {
    let heads = 0;
    const parts = { onHead: () => void heads++, onPiece: () => false, onBodyEnd: () => {}, onRequestError: () => {} };
    const reader = new RequestReader(defaultLimits, parts, { congested: false });
    reader.read(Buffer.from("M".repeat(32) + " /".padEnd(defaultLimits.urlBytes + 32 + more, "7")));
    return heads;
  });
  expect(refused).toEqual([0, 1]);
});

test("a method begins with any capital letter, and with nothing beside them", () => {
  const begins = Array.from("@AZ[", (letter) => {
    const problems: (HttpProblem | undefined)[] = [];
    const onHead = ({ problem }: Http1RequestHead): void => void problems.push(problem);
    const parts = { onHead, onPiece: () => false, onBodyEnd: () => {}, onRequestError: () => {} };
    const reader = new RequestReader(defaultLimits, parts, { congested: false });
    reader.read(Buffer.from(letter));
    const isRefused = problems.length > 0;
    if (!isRefused) reader.read(Buffer.from(" / HTTP/1.1\r\n\r\n"));
    return isRefused ? "refused at once" : problems;
  });
  expect(begins).toEqual(["refused at once", [undefined], [undefined], "refused at once"]);
});

test("extensions of a chunk are counted once, however often something of them comes", () => {
  const seen: string[] = [];
  const parts = {
    onHead: () => {},
    onPiece: (piece: Buffer) => {
      seen.push(piece.toString());
      return false;
    },
    onBodyEnd: () => void seen.push("end"),
    onRequestError: () => reader.stop(),
  };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  reader.read(Buffer.from("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"));
  for (const text of [`5;${"x".repeat(9_000)}`, "x", "\r", "\norder\r\n0\r\n\r\n"]) reader.read(Buffer.from(text));
  expect(seen).toEqual(["order", "end"]);
});

test("a body whose memory is transferred as it comes takes nothing of the next request along", () => {
  const parts = { onHead: () => {}, onPiece: transfer, onBodyEnd: () => {}, onRequestError: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  reader.read(Buffer.from("POST / HTTP/1.1\r\nhost: x\r\n"));
  reader.read(Buffer.from("content-length: 3\r\n\r\nabcGET / HT"));
  expect(reader.incoming.bytes.toString()).toBe("GET / HT");
});

test("a reader reports of each chunk by itself whether a view of it was kept", () => {
  const parts = { onHead: () => {}, onPiece: isKept, onBodyEnd: () => {}, onRequestError: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  const chunks = ["POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"];
  chunks.push("1\r\nk\r\n1\r\nd\r\n", "1\r\nd\r\n");
  expect(chunks.map((chunk) => reader.read(Buffer.from(chunk)))).toEqual([false, true, false]);
});

test("heads of 4 KiB and 64 fields are kept for the next, all in the same memory, and larger ones are not", () => {
  const parts = { onHead: () => {}, onPiece: () => false, onBodyEnd: () => {}, onRequestError: () => {} };
  const reader = new RequestReader(defaultLimits, parts, { congested: false });
  using made = vi.spyOn(Buffer, "allocUnsafeSlow");
  const read = (lines: string): void => {
    reader.read(Buffer.from(`GET / HTTP/1.1\r\nhost: x\r\n${lines}\r\n`));
    reader.stage = "head";
  };
  for (const fields of [64, 63]) read("a: b\r\n".repeat(fields));
  for (const [nth, bytes] of [4096, 4097, 100, 4096].entries()) read(`a: ${String(nth).repeat(bytes - 14)}\r\n`);
  // With the empty line.
  const smallBytes = 9 + 63 * 6 + 2;
  expect(made.mock.calls).toEqual([[smallBytes], [4098]]);
});

function transfer(piece: Uint8Array): boolean {
  freeBuffer(ownPiece(piece).buffer);
  return true;
}

function isKept(piece: Buffer): boolean {
  return piece.includes("k");
}
