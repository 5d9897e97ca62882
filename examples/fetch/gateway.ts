// The greenhouse over Fetch, for the programs beside this one.
import { createFetchGateway, type FetchGateway } from "@plantstore/gateway/fetch";
import { routes } from "../servers/greenhouse.ts";

const service = "greenhouse.v1.GreenhouseService";

/** Answers REST, Connect and gRPC-Web, with the readings of a sensor as a stream, and takes a stream of readings. */
export const gateway: FetchGateway = createFetchGateway({
  routes,
  rest: {
    rules: [
      { selector: `${service}.WatchReadings`, pattern: { case: "get", value: "/sensors/{sensor}/readings" } },
      { selector: `${service}.RecordReadings`, pattern: { case: "post", value: "/readings" }, body: "*" },
    ],
  },
});
