import { createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import type { AdmitRequest } from "../../../gateway/src/index.ts";
import { createRequestIds, requestIdOf, type RequestIdResponses } from "../../src/logs/request-id.ts";

test("requestIdOf returns the same id for the same request", () => {
  const contextValues = createContextValues();
  expect(requestIdOf(contextValues)).toBe(requestIdOf(contextValues));
});

test("requestIdOf returns a different id for each request", () => {
  const ids = Array.from({ length: 10_000 }, () => requestIdOf(createContextValues()));
  expect(new Set(ids).size).toBe(10_000);
});

test("a request id consists of 16 hex digits and a counter", () =>
  expect(requestIdOf(createContextValues())).toMatch(/^[0-9a-f]{16}-[0-9a-z]+$/));

interface Row {
  readonly name: string;
  readonly sent: string | null;
  readonly stream?: true;
  readonly responses?: RequestIdResponses;
  readonly isAccepted: boolean;
  readonly isAdded: boolean;
}

test.each<Row>([
  { name: "no id", sent: null, isAccepted: false, isAdded: false },
  { name: "no id, and all responses contain it", sent: null, responses: "always", isAccepted: false, isAdded: true },
  { name: "no id for a stream", sent: null, stream: true, isAccepted: false, isAdded: true },
  { name: "an id with all accepted punctuation", sent: "aZ0._~:/+=@-", isAccepted: true, isAdded: true },
  { name: "an id of 128 characters", sent: "a".repeat(128), isAccepted: true, isAdded: true },
  { name: "an id of 129 characters", sent: "a".repeat(129), isAccepted: false, isAdded: false },
  { name: "an empty id", sent: "", isAccepted: false, isAdded: false },
  { name: "an id that starts with a space", sent: " a", isAccepted: false, isAdded: false },
  { name: "an id that ends with a line feed", sent: "a\n", isAccepted: false, isAdded: false },
])("a request with $name gets one request id", ({ sent, stream = false, responses = "requested", ...want }) => {
  const added: [string, string][] = [];
  const addResponseHeader: AdmitRequest["addResponseHeader"] = (name, value) => added.push([name, value]);
  const values = { xRequestId: sent, stream, contextValues: createContextValues(), addResponseHeader };
  const request: AdmitRequest = { ...Object.create(null), ...values };
  const { fieldName, onRequest, onError } = createRequestIds(responses);
  onRequest(request);
  const id = requestIdOf(request.contextValues);
  expect([fieldName, id === sent, added.length > 0]).toEqual(["X-Request-Id", want.isAccepted, want.isAdded]);
  onError(request);
  onError(request);
  expect(added).toEqual([["x-request-id", id]]);
});
