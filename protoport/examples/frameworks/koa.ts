// The greenhouse in a Koa application: npx node protoport/examples/frameworks/koa.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import cors from "@koa/cors";
import Koa from "koa";
import { createGateway } from "@protoport/gateway";
import { announce } from "../servers/announce.ts";
import { routes } from "../servers/greenhouse.ts";

const gateway = createGateway({ routes });
const app = new Koa();

app.use(cors({ origin: "https://shop.example" }));
// Before any body parser. With `respond` set to false, Koa does not respond itself. Requests that the gateway does not
// serve continue to the next middleware.
app.use(async (context, next) => {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  context.respond = false;
  context.res.once("close", resolve);
  gateway.handler(context.req, context.res, (error) => {
    context.respond = true;
    if (error === undefined) resolve(next());
    else reject(error);
  });
  await promise;
});
app.use(async (context) => {
  if (context.path === "/") context.body = "<h1>Greenhouse</h1>\n";
  if (context.path === "/echo") context.body = await json(context.req);
});

announce(createServer(app.callback()));
