import { describe, expect, test } from "vitest";
import { openMemoryStore } from "../../src/stores/index.ts";
import {
  fieldValue,
  type HttpAnswer,
  type HttpRequest,
  type HttpVersion,
} from "../../packages/testing/src/carriers/exchange.ts";
import { askPlantServer } from "../support/server/ask-plant-server.ts";
import { authorized } from "../support/server/plant-server.ts";
import { wireFormats, type WireFormat } from "../../packages/testing/src/gateway/wire-format.ts";
import { expectedAnswer, seenAnswer, type SeenAnswer } from "./expected-answer.ts";
import { noCallTable, type NoCallRow } from "./no-call-table.ts";
import { credentialMissing } from "./situations.ts";

const httpVersions: readonly HttpVersion[] = ["1.1", "2"];
const rows = noCallTable.flatMap((row) => httpVersions.map((httpVersion) => ({ ...row, httpVersion })));
type Row = NoCallRow & { readonly httpVersion: HttpVersion };

describe("a request that matches no RPC", () => {
  const served = rows;
  const plants = new Set([7n]);
  const ask = askPlantServer({ store: openMemoryStore(plants) });

  test.each<Row>(served)("$name, over HTTP/$httpVersion", async ({ request, want, httpVersion }) => {
    const authentic = { ...request, header: [...request.header, authorized] };
    const answer = await ask(httpVersion, authentic);
    expect(seenAnswer(formatOf(answer), answer)).toStrictEqual(received(request, want));
    expect(plants).toStrictEqual(new Set([7n]));
  });

  test.each<Row>(served)("without a credential only gets the challenge: $name, over HTTP/$httpVersion", async (row) => {
    const answer = await ask(row.httpVersion, row.request);
    const format = { ...wireFormats[row.caller], contentType: fieldValue(answer.header, "content-type") };
    const want = expectedAnswer(format, credentialMissing);
    expect(seenAnswer(format, answer)).toStrictEqual(received(row.request, want));
  });
});

// RFC 9110 §9.3.2: the response to a HEAD has the header of the response to a GET, and no body.
function received({ httpMethod }: HttpRequest, want: SeenAnswer): SeenAnswer {
  return httpMethod === "HEAD" ? { ...want, messages: [""] } : want;
}

// The answer may have another shape than the caller: gRPC has none for a wrong method.
function formatOf(answer: HttpAnswer): WireFormat {
  const contentType = fieldValue(answer.header, "content-type") ?? "";
  if (contentType.startsWith("application/grpc-web-text")) return wireFormats["grpc-web-text"];
  if (contentType.startsWith("application/grpc-web")) return wireFormats["grpc-web"];
  return contentType.startsWith("application/grpc") ? wireFormats.grpc : wireFormats.rest;
}
