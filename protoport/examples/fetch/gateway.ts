// The greenhouse over Fetch, for the programs in this folder.
import { createFetchGateway, type FetchGateway } from "@protoport/gateway/fetch";
import { routes } from "../servers/greenhouse.ts";

const service = "greenhouse.v1.GreenhouseService";

/** Serves REST, Connect and gRPC-Web, including streams of readings from and to the server. */
export const gateway: FetchGateway = createFetchGateway({
  routes,
  rest: {
    rules: [
      { selector: `${service}.WatchReadings`, pattern: { case: "get", value: "/sensors/{sensor}/readings" } },
      { selector: `${service}.RecordReadings`, pattern: { case: "post", value: "/readings" }, body: "*" },
    ],
  },
});
