import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway } from "../../../src/index.ts";
import { exchangeFetch, fieldValue, getReadingProcedure } from "@protoport/testing";

const { fetch } = createGateway({
  routes: (router) =>
    router.service(GreenhouseService, {
      getReading: ({ sensor }, { responseHeader }) => (responseHeader.set("vary", "x-tenant"), { sensor }),
    }),
  compressMinBytes: 1000,
});

test.each([
  ["GET that accepts gzip", "x-tenant, accept-encoding", "GET", "gzip", 2000],
  ["GET without gzip", "x-tenant, accept-encoding", "GET", "identity", 2000],
  ["GET with a short response", "x-tenant", "GET", "gzip", 10],
  ["POST, which caches do not store", "x-tenant", "POST", "gzip", 2000],
])('a Connect response to a %s has "Vary: %s"', async (_name, vary, httpMethod, accept, bytes) => {
  const message = JSON.stringify({ sensor: "s".repeat(bytes) });
  const isGet = httpMethod === "GET";
  const query = `?encoding=json&message=${encodeURIComponent(message)}`;
  const response = await exchangeFetch(fetch, {
    httpMethod,
    path: `${getReadingProcedure}${isGet ? query : ""}`,
    header: Object.entries({ "accept-encoding": accept, "content-type": "application/json" }),
    ...(!isGet && { body: Buffer.from(message) }),
  });
  expect([response.httpStatus, fieldValue(response.header, "vary")]).toEqual([200, vary]);
});
