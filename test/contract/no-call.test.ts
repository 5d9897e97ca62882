import { describe, expect, test } from "vitest";
import { openMemoryStore } from "../../src/stores/index.ts";
// oxfmt-ignore
import { fieldValue, type HttpRequest, type HttpResponse, type HttpVersion, rowsFor, type WireFormat, wireFormats
} from "@protoport/testing";
import { askPlantServer, authorized } from "../support/server/index.ts";
import { expectedResponse, actualResponse, type ComparedResponse } from "./expected-response.ts";
import { noCallTable, type NoCallTestCase } from "./no-call-table.ts";
import { credentialMissing } from "./situations.ts";

const httpVersions: readonly HttpVersion[] = ["1.1", "2"];
const testCases = httpVersions.flatMap((httpVersion) =>
  rowsFor(httpVersion, httpVersions, noCallTable).map((testCase) => ({ ...testCase, httpVersion })),
);
type TestCase = NoCallTestCase & { readonly httpVersion: HttpVersion };

describe("a request that matches no RPC", () => {
  const plants = new Set([7n]);
  const ask = askPlantServer({ store: openMemoryStore(plants) });

  test.each<TestCase>(testCases)(
    "$name (HTTP/$httpVersion), and no plant is deleted",
    async ({ request, want, httpVersion }) => {
      const response = await ask(httpVersion, { ...request, header: [...request.header, authorized] });
      expect(actualResponse(formatOf(response), response)).toStrictEqual(received(request, want));
      expect(plants).toStrictEqual(new Set([7n]));
    },
  );

  test.each<TestCase>(testCases)(
    "without a credential gets only a challenge over HTTP/$httpVersion ($name)",
    async (testCase) => {
      const response = await ask(testCase.httpVersion, testCase.request);
      const format = { ...wireFormats[testCase.caller], contentType: fieldValue(response.header, "content-type") };
      const want = expectedResponse(format, credentialMissing);
      expect(actualResponse(format, response)).toStrictEqual(received(testCase.request, want));
    },
  );
});

// A HEAD response has the GET response's header, and no body (RFC 9110 §9.3.2).
function received({ httpMethod }: HttpRequest, want: ComparedResponse): ComparedResponse {
  return httpMethod === "HEAD" ? { ...want, messages: [""] } : want;
}

// The response may be in another format than the request, because gRPC defines no response for a wrong method.
function formatOf(response: HttpResponse): WireFormat {
  const contentType = fieldValue(response.header, "content-type") ?? "";
  if (contentType.startsWith("application/grpc-web-text")) return wireFormats["grpc-web-text"];
  if (contentType.startsWith("application/grpc-web")) return wireFormats["grpc-web"];
  return contentType.startsWith("application/grpc") ? wireFormats.grpc : wireFormats.rest;
}
