import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { errorRecord } from "../../../src/plantstore/server/rest-policy.ts";

const procedure = "/plantstore.v1.PlantService/DeletePlant";

test.each([
  { name: "a plant that is not there is 400", code: Code.NotFound, httpStatus: 404, of: procedure, want: 400 },
  {
    name: "a credential that is missing is 400",
    code: Code.Unauthenticated,
    httpStatus: 401,
    of: procedure,
    want: 400,
  },
  {
    name: "a credential that is missing where there is no operation is 400",
    code: Code.Unauthenticated,
    httpStatus: 401,
    of: undefined,
    want: 400,
  },
  { name: "a fault is 400", code: Code.Internal, httpStatus: 500, of: procedure, want: 400 },
  { name: "a store that is away is 400", code: Code.Unavailable, httpStatus: 503, of: procedure, want: 400 },
  { name: "a path without an operation is 404", code: Code.NotFound, httpStatus: 404, of: undefined, want: 404 },
  {
    name: "another method on a known path is 405",
    code: Code.Unimplemented,
    httpStatus: 405,
    of: undefined,
    want: 405,
  },
  { name: "a URL over the limit is 414", code: Code.ResourceExhausted, httpStatus: 414, of: undefined, want: 414 },
  {
    name: "header fields over the limit are 431",
    code: Code.ResourceExhausted,
    httpStatus: 431,
    of: undefined,
    want: 431,
  },
  { name: "a missing Host is 400", code: Code.InvalidArgument, httpStatus: 400, of: undefined, want: 400 },
])("$name", ({ code, httpStatus, of, want }) => {
  expect(errorRecord(new ConnectError("no", code), { httpStatus, procedure: of })).toEqual({
    httpStatus: want,
    body: { error: code, message: "no" },
  });
});

test("an error without a text has an empty message", () => {
  const record = errorRecord(new ConnectError("", Code.Internal), { httpStatus: 500, procedure });
  expect(JSON.stringify(record.body)).toBe('{"error":13,"message":""}');
});
