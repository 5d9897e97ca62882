// The greenhouse over Fetch, for the programs beside this one.
import { createFetchGateway, type FetchGateway } from "plantstore/gateway/fetch";
import { routes } from "../servers/greenhouse.ts";

const selector = "greenhouse.v1.GreenhouseService.WatchReadings";

/** Answers REST, Connect and gRPC-Web, with the readings of a sensor as a stream. */
export const gateway: FetchGateway = createFetchGateway({
  routes,
  rest: { rules: [{ selector, pattern: { case: "get", value: "/sensors/{sensor}/readings" } }] },
});
