"""Makes the calls of a file with Google's REST clients for Python, and writes what each returns to another file, as JSON."""

import functools
import json
import re
import sys
import traceback

from google.api_core.exceptions import GoogleAPICallError
from google.api_core.operation import Operation
from google.api_core.retry import Retry, if_exception_type
from google.auth.credentials import AnonymousCredentials
from google.cloud import tasks_v2, tasks_v2beta2, tasks_v2beta3
from google.cloud.firestore_admin_v1.services.firestore_admin import FirestoreAdminClient
from google.cloud.firestore_v1.services.firestore import FirestoreClient
from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.message import Message

CLASSES = {
    "google.cloud.tasks.v2.CloudTasks": tasks_v2.CloudTasksClient,
    "google.cloud.tasks.v2beta2.CloudTasks": tasks_v2beta2.CloudTasksClient,
    "google.cloud.tasks.v2beta3.CloudTasks": tasks_v2beta3.CloudTasksClient,
    "google.firestore.v1.Firestore": FirestoreClient,
    "google.firestore.admin.v1.FirestoreAdmin": FirestoreAdminClient,
}
POLLING = Retry(predicate=if_exception_type(), initial=0.01)
clients = {}


def client_of(name, port):
    if (name, port) not in clients:
        transport = CLASSES[name].get_transport_class("rest")
        host = f"127.0.0.1:{port}"
        credentials = AnonymousCredentials()
        clients[name, port] = CLASSES[name](
            transport=transport(host=host, url_scheme="http", credentials=credentials)
        )
    return clients[name, port]


def to_json(result):
    if result is None or isinstance(result, (str, dict)):
        return result or {}
    message = result if isinstance(result, Message) else type(result).pb(result)
    return json_format.MessageToDict(message)


def results_of(call):
    name = re.sub(r"(?<!^)([A-Z])", r"_\1", call["method"]).lower()
    pool = descriptor_pool.Default()
    request_class = message_factory.GetMessageClass(pool.FindMessageTypeByName(call["input"]))
    request = json_format.ParseDict(call["request"], request_class())
    client_method = getattr(client_of(call["client"], call["port"]), name)
    method = functools.partial(client_method, metadata=list(call["headers"].items()))
    result = method(request=request)
    if isinstance(result, Operation):
        return [to_json(result.result(polling=POLLING)), to_json(result.metadata)]
    if call["kind"] == "pages" and isinstance(result, Message):
        return items_of_pages(method, request, result)
    if call["kind"] in ("stream", "pages"):
        return [to_json(each) for each in result]
    return [to_json(result)]


def items_of_pages(method, request, page):
    """Follows the pages of a method of a shared service, which returns single pages."""
    items = next(field.name for field in page.DESCRIPTOR.fields if field.is_repeated)
    results = list(getattr(page, items))
    while page.next_page_token:
        request.page_token = page.next_page_token
        page = method(request=request)
        results.extend(getattr(page, items))
    return [to_json(each) for each in results]


def outcome_of(call):
    try:
        return {"results": results_of(call)}
    except GoogleAPICallError as error:
        details = [each if isinstance(each, (str, dict)) else to_json(each) for each in error.details]
        fields = {"reason": error.reason, "domain": error.domain, "metadata": dict(error.metadata or {})}
        return {"error": {"code": error.code, "message": error.message, "details": details, **fields}}
    except Exception:
        return {"stack": traceback.format_exc()}


with open(sys.argv[1]) as file:
    calls = json.load(file)
with open(sys.argv[2], "w") as file:
    json.dump([outcome_of(call) for call in calls], file)
