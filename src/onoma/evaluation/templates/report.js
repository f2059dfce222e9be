// Filters of error examples, some of which are shown at a time. Without JavaScript, all of them are shown.
const AT_ONCE = 20;
for (const form of document.querySelectorAll("form.filters")) {
  const items = [...document.getElementById(form.dataset.list).children];
  const texts = items.map((item) => item.querySelector(".text").textContent.toLowerCase());
  const finders = items.map((item) => JSON.parse(item.dataset.found));
  const more = document.getElementById(`${form.dataset.list}-more`);
  let most = AT_ONCE;
  const update = () => {
    const { kind, type, text, model, found } = Object.fromEntries(new FormData(form));
    const isFound = (place) => !found
      || (found === "none" ? items[place].dataset.gold && !finders[place].length : finders[place].includes(found.slice(1)));
    let fitting = 0;
    items.forEach((item, place) => {
      const fits = (!kind || item.dataset.kind === kind) && (!type || item.dataset.type === type)
        && (!model || item.dataset.model === model) && isFound(place) && texts[place].includes(text.toLowerCase());
      fitting += fits;
      item.hidden = !fits || fitting > most;
    });
    form.querySelector("output").textContent = `${fitting} of ${items.length}`;
    more.hidden = fitting <= most;
    more.textContent = `Show ${Math.min(AT_ONCE, fitting - most)} more of ${fitting - most}`;
  };
  form.addEventListener("input", () => {
    most = AT_ONCE;
    update();
  });
  more.addEventListener("click", () => {
    most += AT_ONCE;
    update();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update();
}
