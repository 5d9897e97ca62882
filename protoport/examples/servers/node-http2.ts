// The greenhouse in a node:http2 server that also has its own pages: npx node protoport/examples/servers/node-http2.ts 8080
//   curl --http2-prior-knowledge http://127.0.0.1:8080/sensors/palm/reading
import { createServer } from "node:http2";
import { createGateway } from "@protoport/gateway";
import { announce } from "./announce.ts";
import { routes } from "./greenhouse.ts";

const gateway = createGateway({ routes });

announce(
  createServer((request, response) => {
    gateway.handler(request, response, () => {
      response.setHeader("content-type", "text/html; charset=utf-8");
      response.end("<h1>Greenhouse</h1>\n");
    });
  }),
);
