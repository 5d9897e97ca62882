import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway } from "../../../src/index.ts";
import { getReadingProcedure } from "../../../../testing/src/gateway/greenhouse.ts";
import { fieldValue } from "../../../../testing/src/http/exchange.ts";
import { exchangeFetch } from "../../../../testing/src/http/fetch.ts";

const { fetch } = createGateway({
  routes: (router) =>
    router.service(GreenhouseService, {
      getReading: ({ sensor }, { responseHeader }) => {
        responseHeader.set("vary", "x-tenant");
        return { sensor };
      },
    }),
  compressMinBytes: 1000,
});

describe("a Connect response", () => {
  test.each([
    {
      name: "GET that accepts gzip",
      httpMethod: "GET",
      accept: "gzip",
      bytes: 2000,
      vary: "x-tenant, accept-encoding",
    },
    { name: "GET without gzip", httpMethod: "GET", accept: "identity", bytes: 2000, vary: "x-tenant, accept-encoding" },
    { name: "GET with a short response", httpMethod: "GET", accept: "gzip", bytes: 10, vary: "x-tenant" },
    { name: "POST, which caches do not store", httpMethod: "POST", accept: "gzip", bytes: 2000, vary: "x-tenant" },
  ])('to a $name has "Vary: $vary"', async ({ httpMethod, accept, bytes, vary }) => {
    const message = JSON.stringify({ sensor: "s".repeat(bytes) });
    const isGet = httpMethod === "GET";
    const query = `?encoding=json&message=${encodeURIComponent(message)}`;
    const response = await exchangeFetch(fetch, {
      httpMethod,
      path: `${getReadingProcedure}${isGet ? query : ""}`,
      header: [
        ["accept-encoding", accept],
        ["content-type", "application/json"],
      ],
      ...(!isGet && { body: Buffer.from(message) }),
    });
    expect([response.httpStatus, fieldValue(response.header, "vary")]).toEqual([200, vary]);
  });
});
