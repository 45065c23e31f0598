// Keeps the page current, and says so when it cannot. Each message holds the elements that changed, by id.
"use strict";

const PATIENCE = 10000; // milliseconds; without a free stream, a message comes every 5 seconds
const lost = document.getElementById("lost");
let heard = Date.now();
let source;

function listen() {
  source = new EventSource("events");
  source.onmessage = (event) => {
    heard = Date.now();
    for (const [id, html] of Object.entries(JSON.parse(event.data))) {
      const element = document.getElementById(id);
      if (element) element.innerHTML = html; // a newer bridge may have more of them
    }
  };
}

function look() {
  const silent = Date.now() - heard > PATIENCE;
  const since = new Date(heard).toISOString().slice(11, 19);
  const text = silent ? `No word from this process since ${since} UTC: the page is out of date.` : "";
  document.body.classList.toggle("lost", silent);
  if (lost.textContent !== text) lost.textContent = text; // an alert is read out each time it is set
  if (source.readyState === EventSource.CLOSED) listen(); // it was refused; a lost stream comes back by itself
}

listen();
setInterval(look, 1000);
