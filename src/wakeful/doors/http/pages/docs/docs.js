"use strict";

// Shows the document as text: nothing in it is ever read as markup.
function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function resolved(schema, components, depth = 0) {
  if (Array.isArray(schema)) return schema.map((part) => resolved(part, components, depth));
  if (schema === null || typeof schema !== "object") return schema;
  if (schema.$ref && depth < 6) {
    const name = schema.$ref.split("/").pop();
    return resolved(components.schemas[name], components, depth + 1);
  }
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, resolved(value, components, depth)])
  );
}

function part(title, content) {
  const made = element("section");
  made.append(element("h4", title), element("pre", JSON.stringify(content, null, 2)));
  return made;
}

function operation(method, path, described, components) {
  const made = element("details");
  const head = element("summary");
  head.append(element("span", method.toUpperCase(), "method"), element("code", path));
  head.append(" " + described.summary);
  made.append(head);
  if (described["x-scope"]) made.append(element("p", "Scope: " + described["x-scope"]));
  if (described.parameters) made.append(part("Parameters", described.parameters));
  if (described.requestBody) made.append(part("Body", resolved(described.requestBody.content, components)));
  for (const [status, response] of Object.entries(described.responses)) {
    if (status !== "default") made.append(part(status, resolved(response.content || {}, components)));
  }
  return made;
}

async function show() {
  const main = document.getElementById("operations");
  const answer = await fetch("/openapi.json");
  if (!answer.ok) {
    main.append(element("p", "The document cannot be read: " + answer.status));
    return;
  }
  const document_ = await answer.json();
  for (const [path, methods] of Object.entries(document_.paths)) {
    for (const [method, described] of Object.entries(methods)) {
      main.append(operation(method, path, described, document_.components));
    }
  }
}

show();
