import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { errorRecord } from "../../src/service/error-record.ts";

const procedure = "/plantstore.v1.PlantService/DeletePlant";

test.each(
  // oxfmt-ignore
  [
    ["a missing plant has the status 400", Code.NotFound, "ERR_PLANT_NOT_FOUND", 404, procedure, 400],
    ["a missing credential has the status 400", Code.Unauthenticated, "ERR_CREDENTIAL_MISSING", 401, procedure, 400],
    ["a missing credential on an unknown path has the status 400", Code.Unauthenticated, "ERR_CREDENTIAL_MISSING", 401,
      undefined, 400],
    ["an internal error has the status 400", Code.Internal, "ERR_HANDLER_FAILED", 500, procedure, 400],
    ["an unavailable store has the status 400", Code.Unavailable, "ERR_STORE_UNAVAILABLE", 503, procedure, 400],
    ["an unsupported content type has the status 400", Code.InvalidArgument, "ERR_CONTENT_TYPE", 415, procedure, 400],
    ["an unknown path has the status 404", Code.NotFound, "ERR_NO_ROUTE", 404, undefined, 404],
    ["an unknown method has the status 501", Code.Unimplemented, "ERR_METHOD_UNKNOWN", 501, undefined, 501],
    ["a method that the path does not allow has the status 405", Code.Unimplemented, "ERR_METHOD_NOT_ALLOWED", 405,
      undefined, 405],
    ["a URL over the limit has the status 414", Code.ResourceExhausted, "ERR_URL_TOO_LONG", 414, undefined, 414],
    ["a header over the limit has the status 431", Code.ResourceExhausted, "ERR_HEADER_TOO_LARGE", 431, undefined, 431],
    ["a missing Host has the status 400", Code.InvalidArgument, "ERR_HTTP_INVALID", 400, undefined, 400],
  ],
)("%s in the error record", (_, code, errorCode, httpStatus, of, want) => {
  const error = Object.assign(new ConnectError("no", code), { errorCode });
  const expected = { httpStatus: want, body: { error: code, message: "no" } };
  expect(errorRecord(error, { httpStatus, procedure: of })).toEqual(expected);
});

test("an error without a message has an empty message in its record", () => {
  const record = errorRecord(new ConnectError("", Code.Internal), { httpStatus: 500, procedure });
  expect(JSON.stringify(record.body)).toBe('{"error":13,"message":""}');
});
