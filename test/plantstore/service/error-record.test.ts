import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { errorRecord } from "../../../src/plantstore/service/error-record.ts";

const procedure = "/plantstore.v1.PlantService/DeletePlant";

test.each([
  ["a plant that does not exist is 400", Code.NotFound, 404, procedure, 400],
  ["a missing credential is 400", Code.Unauthenticated, 401, procedure, 400],
  ["a missing credential is 400 on an unknown path too", Code.Unauthenticated, 401, undefined, 400],
  ["an internal error is 400", Code.Internal, 500, procedure, 400],
  ["an unavailable store is 400", Code.Unavailable, 503, procedure, 400],
  ["an unknown path is 404", Code.NotFound, 404, undefined, 404],
  ["a method that the path does not have is 405", Code.Unimplemented, 405, undefined, 405],
  ["a URL over the limit is 414", Code.ResourceExhausted, 414, undefined, 414],
  ["header fields over the limit are 431", Code.ResourceExhausted, 431, undefined, 431],
  ["a missing Host is 400", Code.InvalidArgument, 400, undefined, 400],
])("%s", (_, code, httpStatus, of, want) => {
  expect(errorRecord(new ConnectError("no", code), { httpStatus, procedure: of })).toEqual({
    httpStatus: want,
    body: { error: code, message: "no" },
  });
});

test("an error without a message gets a record with an empty message", () => {
  const record = errorRecord(new ConnectError("", Code.Internal), { httpStatus: 500, procedure });
  expect(JSON.stringify(record.body)).toBe('{"error":13,"message":""}');
});
