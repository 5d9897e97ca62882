import { expect } from "vitest";
import type { Field, HttpAnswer, HttpRequest } from "../../../testing/src/carriers/exchange.ts";
import { answerRows } from "./answers.ts";
import { bodyRows } from "./bodies.ts";
import { legacyRows } from "./legacies.ts";
import { maskRows } from "./masks.ts";
import { pathRows } from "./paths.ts";
import { queryRows } from "./queries.ts";
import type { Row, Want } from "./row.ts";
import { valueRows } from "./values.ts";

/** All rows, as their files group them. */
export const corpusGroups: readonly { readonly name: string; readonly rows: readonly Row[] }[] = [
  { name: "paths", rows: pathRows },
  { name: "values", rows: valueRows },
  { name: "queries", rows: queryRows },
  { name: "bodies", rows: bodyRows },
  { name: "masks", rows: maskRows },
  { name: "legacies", rows: legacyRows },
  { name: "answers", rows: answerRows },
];

/** Returns the request of a row. */
export function toRequest(row: Row): HttpRequest {
  const [httpMethod = "", path = ""] = row.request.split(" ");
  const contentType = row.contentType === undefined ? row.body !== undefined && "application/json" : row.contentType;
  const header: Field[] = [...(row.header ?? [])];
  if (typeof contentType === "string") header.push(["content-type", contentType]);
  const body = typeof row.body === "string" ? new TextEncoder().encode(row.body) : row.body;
  return body === undefined ? { httpMethod, path, header } : { httpMethod, path, header, body };
}

/** Fails if an answer is not the one that a row wants. */
export function expectAnswer(answer: HttpAnswer, want: Want): void {
  const header = Object.fromEntries(answer.header);
  const text = answer.body.toString("utf8");
  if ("rpc" in want) {
    expect(`${answer.httpStatus} ${text}`).toMatch(/^200 /);
    expect(JSON.parse(text)).toEqual({ rpc: want.rpc, sink: want.sink });
    return;
  }
  expect(answer.httpStatus, text).toBe(want.httpStatus);
  expect(header).toMatchObject(want.header ?? {});
  if ("json" in want) {
    expect(text === "" ? undefined : JSON.parse(text)).toEqual(want.json);
    return;
  }
  expect(header["content-type"]).toBe("application/json");
  const record: unknown = JSON.parse(text);
  expect(record).toMatchObject({ code: want.code, message: expect.stringContaining(want.message) });
}

/** A request in one line, for the name of its row. */
export function askedBy({ request, body, contentType }: Row): string {
  if (body === undefined) return request;
  const type = contentType === undefined ? "" : ` as ${contentType ?? "no type"}`;
  return `${request} with ${typeof body === "string" ? body.replaceAll(/[\t\r\n]/g, " ") : "bytes that are no text"}${type}`;
}
