// The greenhouse as a route handler of Next, with this file as app/[...path]/route.ts: npx next dev --port 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
// In app/api/[...path]/route.ts, the gateway would have `requestPathPrefix: "/api"`.
import { gateway } from "./gateway.ts";

const handle = (request: Request): Promise<Response> => gateway.fetch(request);

export { handle as DELETE, handle as GET, handle as HEAD, handle as PATCH, handle as POST, handle as PUT };
