import { describe, expect, test } from "vitest";
import { FetchExchange } from "../../../src/http/fetch-exchange.ts";

describe.each(["respond", "begin"] as const)("%s()", (send) => {
  test.each([199, 200.5, 600, Number.NaN])("throws RangeError for the status %d", (httpStatus) => {
    const exchange = new FetchExchange(new Request("http://x/"));
    expect(() => exchange[send](httpStatus, [])).toThrow(
      new RangeError(`the HTTP status must be an integer between 200 and 599, got ${httpStatus}`),
    );
    exchange.reset();
  });

  test.each([200, 599])("sends the status %d", async (httpStatus) => {
    const exchange = new FetchExchange(new Request("http://x/"));
    exchange[send](httpStatus, []);
    expect(await exchange.response).toMatchObject({ status: httpStatus });
    exchange.end();
  });
});
